"""What a command line would do: parsed, unwrapped, and looked up in a table of known programs.

Pure. Nothing runs, nothing is opened; what has to be known of the machine is asked of a `Ground`.
"""

"""The task assistant: its tools, its words and its rules, on the general chat."""

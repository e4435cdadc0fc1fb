"""bridle as an agent of an editor: the Agent Client Protocol over standard input and output.

lines.py reads and writes, peer.py knows requests and answers, agent.py which requests there are,
conversation.py is one session at the editor. How an engine is made is handed in (host.py).
"""

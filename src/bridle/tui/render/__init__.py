"""Draw text, Markdown and blocks as lines of segments, in the colours of a palette."""

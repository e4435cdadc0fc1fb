"""Some lines of a text that comes in pieces, with their numbers, in bounded memory. Pure."""

LINE = 2000  # characters of one line that are shown
MOST = 100_000  # characters of all lines together


class Window:
    """Takes a text piece by piece, and keeps the lines from `first` on, so many and no more.

    `last` is the number of the last line that is kept, `number` that of the line which is being
    read. A very long line is kept by its beginning and its length.
    """

    def __init__(self, first: int, count: int) -> None:
        self.first = first
        self.last = first - 1
        self.number = 1
        self.crlf = False
        self.full = False
        self._count = count
        self._lines: list[str] = []
        self._size = 0
        self._begun = ""  # of the line that is being read
        self._length = 0
        self._return = ""  # a carriage return at the end of a piece: what follows decides

    def take(self, text: str) -> None:
        """The next piece."""
        breaks = text.count("\n")
        if self.full or self.number + breaks < self.first:
            self._pass_over(text, breaks)
            return
        for index, piece in enumerate(text.split("\n")):
            if index:
                self._end_line()
            self._grow(piece)

    def _pass_over(self, text: str, breaks: int) -> None:
        self.crlf = self.crlf or "\r\n" in text
        self.number += breaks
        self._length = len(text) - text.rfind("\n") - 1 + (0 if breaks else self._length)

    def _grow(self, piece: str) -> None:
        self._length += len(piece)
        if self.number >= self.first and not self.full and piece:
            self._begun = (self._begun + piece[: LINE + 2])[: LINE + 2]
            self._return = piece[-1:]

    def _end_line(self) -> None:
        if self._return == "\r":
            self.crlf = True
        self._keep()
        self.number += 1
        self._length, self._begun, self._return = 0, "", ""

    def _keep(self) -> None:
        if self.number < self.first or self.full:
            return
        line, length = self._begun, self._length
        if self._return == "\r":
            line, length = line[:length].removesuffix("\r"), length - 1
        if length > LINE:
            line = f"{line[:LINE]}[… the line has {length:,} characters]"
        self._size += len(line) + 8
        if self._lines and self._size > MOST:
            self.full = True
            return
        self._lines.append(f"{self.number:>6}\t{line}")
        self.last = self.number
        self.full = len(self._lines) >= self._count

    def end(self) -> list[str]:
        """That was all: the lines. `number` is then how many there were."""
        if self._length:
            self._keep()
        else:
            self.number -= 1
        return self._lines

    @property
    def lines(self) -> list[str]:
        """Those that are whole."""
        return self._lines

"""Where a JSON value that arrives in pieces closes."""


class Nesting:
    """Counts brackets outside of strings. Nothing else is checked: the value is for the client to read."""

    def __init__(self) -> None:
        self.depth = 0
        self._in_string = False
        self._escaped = False

    def end_of(self, text: str) -> int | None:
        """Index in `text`, which goes on from the text before, just behind the bracket that closes all."""
        for index, character in enumerate(text):
            if self._in_string:
                self._in_string = self._escaped or character != '"'
                self._escaped = character == "\\" and not self._escaped
            elif character == '"':
                self._in_string = True
            elif character in "{[":
                self.depth += 1
            elif character in "}]":
                self.depth -= 1
                if self.depth <= 0:
                    return index + 1
        return None

"""The fixed sentences, as data that is translated: one JSON file a language.

English is complete and stands in for what another language lacks. A sentence has places in braces;
what is put there is never read as a place again. Knows no tool and no user.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

_FOLDER = Path(__file__).parent
_PLACE = re.compile(r"\{(\w+)\}")
FALLBACK = "en"


@dataclass(frozen=True)
class Replies:
    """Sentences by language and key."""

    languages: Mapping[str, Mapping[str, str]]

    def say(self, language: str, key: str, /, **words: object) -> str:
        """The sentence with its places filled. A `count` of one takes `KEY_one` where it is."""
        if words.get("count") == 1 and self.find(language, f"{key}_one") is not None:
            key = f"{key}_one"
        sentence = self.find(language, key)
        if sentence is None:
            raise KeyError(f"there is no sentence {key!r}")
        return _PLACE.sub(lambda place: str(words.get(place[1], place[0])), sentence)

    def again(self, language: str, text: str) -> str:
        """A whole fixed sentence in English, said in that language; other words as they are."""
        if (known := self.known(language)) != FALLBACK:
            for key, sentence in self.languages.get(FALLBACK, {}).items():
                if sentence == text:
                    return self.say(known, key)
        return text

    def find(self, language: str, key: str) -> str | None:
        """The sentence as it is written, in that language or else in English."""
        found = self.languages.get(self.known(language), {}).get(key)
        return found if found is not None else self.languages.get(FALLBACK, {}).get(key)

    def known(self, language: str) -> str:
        """The language whose sentences are used: `es` for `es-MX`; English for one we lack."""
        name = language.replace("_", "-").lower()
        if name in self.languages:
            return name
        name = name.partition("-")[0]
        return name if name in self.languages else FALLBACK

    def has(self, language: str) -> bool:
        """Are there sentences in this language?"""
        return language.replace("_", "-").lower().partition("-")[0] in self.languages

    def direction(self, language: str) -> str:
        """`rtl` where the language is written from right to left."""
        return self.languages.get(self.known(language), {}).get("direction", "ltr")

    def over(self, more: Mapping[str, Mapping[str, str]]) -> "Replies":
        """These with others laid over them, language by language."""
        names = {*self.languages, *more}
        return Replies({one: {**self.languages.get(one, {}), **more.get(one, {})} for one in names})

    @classmethod
    def load(cls, folder: str | Path) -> "Replies":
        """Those of a folder with files such as `en.json`, each an object of strings."""
        files: Iterable[Path] = sorted(Path(folder).glob("*.json"))
        decode = msgspec.json.Decoder(dict[str, str]).decode
        return cls({path.stem: decode(path.read_bytes()) for path in files})


@cache
def standard() -> Replies:
    """The sentences that come with bridle, read once."""
    return Replies.load(_FOLDER)

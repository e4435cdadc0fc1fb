"""The fixed sentences of replies, in one JSON file per language, and which language to use.

English is complete and is used wherever another language has no translation. Placeholders are
written in braces; text that is filled in is never treated as a placeholder again.
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
        """Return a sentence with its placeholders filled in.

        With a `count`, use the sentence for that plural form, such as `KEY_one`, if there is one.
        """
        count = words.get("count")
        if isinstance(count, int):
            key = self._plural(language, key, count)
        sentence = self.find(language, key)
        if sentence is None:
            raise KeyError(f"there is no sentence {key!r}")
        return _PLACE.sub(lambda place: str(words.get(place[1], place[0])), sentence)

    def translate(self, language: str, text: str) -> str:
        """Translate a text that is one of the fixed English sentences; return others unchanged."""
        if (known := self.resolve_language(language)) != FALLBACK:
            for key, sentence in self.languages.get(FALLBACK, {}).items():
                if sentence == text:
                    return self.say(known, key)
        return text

    def _plural(self, language: str, key: str, count: int) -> str:
        """Return the key of the sentence for that count."""
        known = self.resolve_language(language)
        if key not in self.languages.get(known, {}):
            known = FALLBACK
        form = f"{key}_{plural_form(known, count)}"
        return form if form in self.languages.get(known, {}) else key

    def find(self, language: str, key: str) -> str | None:
        """Return the sentence with its placeholders, in that language or else in English."""
        found = self.languages.get(self.resolve_language(language), {}).get(key)
        return found if found is not None else self.languages.get(FALLBACK, {}).get(key)

    def resolve_language(self, language: str) -> str:
        """Return the language whose sentences are used: `es` for `es-MX`, English if unknown."""
        name = language.replace("_", "-").lower()
        if name in self.languages:
            return name
        name = name.partition("-")[0]
        return name if name in self.languages else FALLBACK

    def has_language(self, language: str) -> bool:
        """Do we have sentences in this language?"""
        return language.replace("_", "-").lower().partition("-")[0] in self.languages

    def direction(self, language: str) -> str:
        """Return `rtl` if the language is written from right to left."""
        return self.languages.get(self.resolve_language(language), {}).get("direction", "ltr")

    def override(self, more: Mapping[str, Mapping[str, str]]) -> "Replies":
        """Return these sentences, with the given ones replacing or extending them."""
        names = {*self.languages, *more}
        return Replies(
            {name: {**self.languages.get(name, {}), **more.get(name, {})} for name in names}
        )

    @classmethod
    def load(cls, folder: str | Path) -> "Replies":
        """Load the files of a folder, such as `en.json`, each an object of strings."""
        files: Iterable[Path] = sorted(Path(folder).glob("*.json"))
        decode = msgspec.json.Decoder(dict[str, str]).decode
        return cls({path.stem: decode(path.read_bytes()) for path in files})


def plural_form(language: str, count: int) -> str:
    """Return which plural form a number takes, by the rules of Unicode.

    Languages other than Arabic have only `one` and `other` here, which fits our sentences.
    """
    if language.partition("-")[0] != "ar":
        return "one" if count == 1 else "other"
    if count in (0, 1, 2):
        return ("zero", "one", "two")[count]
    rest = count % 100
    return "few" if 3 <= rest <= 10 else "many" if rest >= 11 else "other"


@cache
def standard_replies() -> Replies:
    """Return the sentences that come with bridle."""
    return Replies.load(_FOLDER)


_ARABIC = re.compile("[\u0600-\u06ff\u0750-\u077f]")
_LETTERS = re.compile(r"[^\W\d_]")
_SPANISH = re.compile(
    r"[¿¡ñ]|\b(?:añade|añadir|agrega|agregar|tarea|tareas|lista|borra|borrar|elimina|muestra"
    r"|muéstrame|completa|completar|marca|hecha|mañana|para el|mis|quiero|qué|sí|cambia|hola"
    r"|gracias|comprar|llamar|recuérdame|pendientes)\b",
    re.IGNORECASE,
)


def detect_language(message: object, replies: Replies) -> str:
    """Return the language of a message, as far as letters and common words tell; else English."""
    text = message[:500] if isinstance(message, str) else ""
    if text.isascii() and not _SPANISH.search(text):
        return FALLBACK
    letters = len(_LETTERS.findall(text))
    if replies.has_language("ar") and len(_ARABIC.findall(text)) * 2 > letters > 0:
        return "ar"
    if replies.has_language("es") and len(_SPANISH.findall(text)) >= 2:
        return "es"
    return FALLBACK

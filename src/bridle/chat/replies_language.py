"""Which language a message is written in, as far as its letters and small words tell. Pure."""

import re

from bridle.chat.replies import FALLBACK, Replies

_ARABIC = re.compile("[\u0600-\u06ff\u0750-\u077f]")
_LETTERS = re.compile(r"[^\W\d_]")
_SPANISH = re.compile(
    r"[¿¡ñ]|\b(?:añade|añadir|agrega|agregar|tarea|tareas|lista|borra|borrar|elimina|muestra"
    r"|muéstrame|completa|completar|marca|hecha|mañana|para el|mis|quiero|qué|sí|cambia|hola"
    r"|gracias|comprar|llamar|recuérdame|pendientes)\b",
    re.IGNORECASE,
)


def language_of(message: object, replies: Replies) -> str:
    """The language whose sentences fit; English where nothing tells otherwise."""
    text = message[:500] if isinstance(message, str) else ""
    if text.isascii() and not _SPANISH.search(text):
        return FALLBACK
    letters = len(_LETTERS.findall(text))
    if replies.has("ar") and len(_ARABIC.findall(text)) * 2 > letters > 0:
        return "ar"
    if replies.has("es") and len(_SPANISH.findall(text)) >= 2:
        return "es"
    return FALLBACK

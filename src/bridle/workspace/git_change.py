"""What a command did to git's configuration: can it be let be? Pure."""

from collections import Counter
from collections.abc import Iterable

from bridle.workspace.git_config import Setting, is_harmless, parse


def is_tame(before: str, after: str) -> bool:
    """Does a configuration change only by what cannot run anything, nor send work elsewhere?

    Something may be added: a branch, a remote that was not there, a name. Of what stood there only
    the settings of branches may go. A branch is pushed to a remote that was there already; only a
    whole new configuration brings its own.
    """
    try:
        old, new = Counter(parse(before)), Counter(parse(after))
    except ValueError:
        return False
    there = _remotes(old) if old else _remotes(new)
    return all(_is_plain(one, _remotes(old), there) for one in new - old) and all(
        one.section == "branch" for one in old - new
    )


def _remotes(settings: Iterable[Setting]) -> set[str | None]:
    return {one.subsection for one in settings if one.section == "remote"}


def _is_plain(setting: Setting, old: set[str | None], there: set[str | None]) -> bool:
    if not is_harmless(setting) or "::" in (setting.value or ""):
        return False
    if setting.section == "remote":
        # a new `origin` would get what was sent to the only other one until now
        is_new = setting.subsection not in old and not (old and setting.subsection == "origin")
        return is_new and setting.key in ("url", "fetch")
    if setting.section == "branch" and setting.key in ("remote", "pushremote"):
        return setting.value == "." or setting.value in there
    return setting.section in ("core", "branch", "user", "init", "pull")

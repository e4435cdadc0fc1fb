"""The distribution that installs this package: its name, its version, how to install its extras."""

NAME = "bridle-agent"  # the package is `bridle`; a distribution of that name is somebody else's


def install_hint(extra: str) -> str:
    """What to do if the packages of that extra are not installed."""
    return f"Install it with: pip install '{NAME}[{extra}]'"


def version() -> str:
    """The installed version; "0" if the package is used without having been installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(NAME)
    except PackageNotFoundError:
        return "0"

"""The distribution that installs this package: its name, version and extras."""

NAME = "bridle-agent"  # an unrelated distribution is named `bridle`, like our package


def install_hint(extra: str) -> str:
    """Say how to install the packages of an extra."""
    return f"Install it with: pip install '{NAME}[{extra}]'"


def version() -> str:
    """The installed version; "0" if the package is used without having been installed."""
    from importlib.metadata import PackageNotFoundError
    from importlib.metadata import version as installed

    try:
        return installed(NAME)
    except PackageNotFoundError:
        return "0"

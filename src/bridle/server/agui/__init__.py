"""AG-UI: front ends that speak the Agent User Interaction Protocol drive sessions of the server.

mapping.py says records in its words, incoming.py reads what a front end sends, threads.py knows
which session a thread is, running.py is one run, route.py the address. Needs the extra `agui`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bridle.server.routing import ApiRoute


def agui_routes() -> "tuple[ApiRoute, ...]":
    """The address, for an `Application`; none where the protocol's library is not installed."""
    from importlib.util import find_spec

    if find_spec("ag_ui") is None:
        return ()
    from bridle.server.agui.routes import routes

    return routes()

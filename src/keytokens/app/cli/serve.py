"""`keytokens serve`: the explorer in a browser."""

from __future__ import annotations

import os
import secrets
import sys
import webbrowser
from pathlib import Path
from typing import Annotated, Any

import typer

from ...base.errors import InputError, MissingExtra
from .common import say

_MANNERS: dict[str, Any] = {"timeout_keep_alive": 15, "timeout_graceful_shutdown": 5, "server_header": False}


def data_folder() -> Path:
    """Where this user's programs keep their data."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    elif sys.platform == "darwin":
        base = "~/Library/Application Support"
    else:
        base = os.environ.get("XDG_DATA_HOME") or "~/.local/share"
    return Path(base).expanduser() / "keytokens"


def serve(
    model: Annotated[Path | None, typer.Argument(help="Directory of a model to put into the store and open.")] = None,
    store: Annotated[Path | None, typer.Option(help="Folder for models and runs; by default the user's own.")] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on; other than this machine's needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 for any that is free.")] = 8765,
    token: Annotated[str | None, typer.Option(help="Token that a caller must send; made if one is needed.")] = None,
    open_browser: Annotated[bool, typer.Option("--open", help="Open a browser window.")] = False,
) -> None:
    """Look at models in a browser, train new ones, and answer scripts; on this machine only, unless told otherwise."""
    try:
        from ..serve.app import create_app
        from ..serve.connections import configured
        from ..serve.guard import LOOPBACK, is_loopback
        from ..serve.models import take_in
        from ..serve.store import Store
    except ImportError as error:
        raise MissingExtra("serve needs a web server, an extra: pip install 'keytokens[serve]'") from error
    local = is_loopback(host)
    if not local and token is None:
        token = secrets.token_urlsafe(24)
    if token is not None and len(token) < 16:
        raise InputError("serve: `--token` must have at least 16 characters. Leave it out and one is made.")
    kept = Store(store or data_folder())
    shown = "" if model is None else f"models/{take_in(kept, model)}"
    app = create_app(kept, token=token, hosts=LOOPBACK if local else ())
    config = configured(app, host=host, port=port, log_level="warning", **_MANNERS)
    server = _Server(config, shown, token, open_browser)
    try:
        server.run()
    finally:
        kept.close()


def _Server(config: Any, shown: str, token: str | None, open_browser: bool) -> Any:
    """A uvicorn server that says its address once it listens, whichever port it was given."""
    import uvicorn

    from ..serve.connections import lengthen_queue

    class Server(uvicorn.Server):
        async def startup(self, sockets: Any = None) -> None:
            await super().startup(sockets)
            if self.started and self.servers:
                lengthen_queue(self)
                name, number = self.servers[0].sockets[0].getsockname()[:2]
                name = f"[{name}]" if ":" in name else name
                address = f"http://{name}:{number}/{shown}" + (f"?token={token}" if token else "")
                say(f"keytokens is at {address} (Ctrl-C ends it)")
                sys.stdout.flush()
                if open_browser:
                    webbrowser.open(address)

        async def shutdown(self, sockets: Any = None) -> None:
            await config.app.state.runs.close()  # first: pages that listen to a training would hold the server
            await super().shutdown(sockets)

    return Server(config)

"""A server on loopback that answers requests as a test says."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Request(BaseHTTPRequestHandler):
    """One request, which is read once and answered once."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *args: object) -> None:
        return None

    def read(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def reply(self, text: str, status: int = 200, headers: Mapping[str, str] = {}) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(data))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def say(self, text: str, **usage: int) -> None:
        """Reply as a chat model does."""
        self.reply(json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}], "usage": usage}))


@contextmanager
def serving(answer: Callable[[Request], None]) -> Iterator[str]:
    """The base URL of a server whose requests are answered so, until the end of the block."""
    methods = dict.fromkeys(("do_POST", "do_GET"), lambda self: answer(self))
    http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Request,), methods))
    threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield f"http://127.0.0.1:{http.server_port}/v1"
    http.shutdown()
    http.server_close()

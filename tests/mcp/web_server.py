"""A raw MCP server over HTTP in a thread of the test, as honest or as hostile as its mode says."""

import gzip
import json
import socket
import threading
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from raw_server import CROWDS, respond


class Web(ThreadingHTTPServer):
    """Answers by `respond`. `seen` are the headers of every request; `known` are its sessions."""

    daemon_threads = True

    def __init__(self, mode, port=0):
        super().__init__(("127.0.0.1", port), _Answering)
        self.mode, self.state = mode, {"calls": 0}
        self.seen, self.known, self.elsewhere = [], set(), ""
        self.sockets, self.sessions = [], 0
        self.listened = 0
        self.done, self.entered, self.heard = [], threading.Event(), threading.Event()

    def process_request(self, request, client_address):
        self.sockets.append(request)
        super().process_request(request, client_address)

    def handle_error(self, request, client_address):
        pass  # a connection that was cut

    def stop(self):
        """As a server that is killed: whoever is connected is cut off."""
        self.shutdown()
        self.server_close()
        for one in self.sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/mcp"


class _Answering(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.server.listened += 1
        if self.server.mode != "restless":
            return self._send(405, b"")
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.wfile.write(b"retry: 0\nid: 1\ndata:\n\n")
        self.close_connection = True
        return None

    def do_DELETE(self):
        self._send(200, b"")

    def do_POST(self):
        web = self.server
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        web.seen.append({name.lower(): value for name, value in self.headers.items()})
        session = self.headers.get("mcp-session-id")
        if web.mode == "locked" and self.headers.get("authorization") != "Bearer s3cret-token":
            return self._send(401, b"")
        if web.elsewhere:
            return self._send(307, b"", location=web.elsewhere)
        if web.mode in ("asking", "restarted") and self._forget(message, session):
            return None
        if session is not None and session not in web.known:
            return self._send(404, b"")
        if "id" not in message:
            return self._send(202, b"")
        return self._reply(message)

    def _forget(self, message, session):
        """A call that is carried out, in a session that is forgotten before it is answered."""
        web = self.server
        if "method" not in message:  # the answer to the question
            web.known.clear()
            self._send(404, b"")
            web.heard.set()
            return True
        if message["method"] != "tools/call":
            return False
        said = message["params"]["arguments"]["text"]
        if said == "goes":
            assert web.entered.wait(20)
            if session == "session-0":
                web.known.clear()
            else:
                web.heard.set()
            return False
        web.done.append(said)
        self._stay()
        return True

    def _stay(self):
        web = self.server
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        web.entered.set()
        if web.mode == "asking":
            asked = json.dumps({"jsonrpc": "2.0", "id": 77, "method": "roots/list"})
            self.wfile.write(f"data: {asked}\n\n".encode())
        assert web.heard.wait(20)

    def _reply(self, message):
        web, number = self.server, message["id"]
        if message["method"] == "tools/call" and web.mode == "gigabyte":
            return self._pour(b'{"jsonrpc":"2.0","id":1,"result":{"x":"', b"x" * (1 << 20), 1024)
        if message["method"] == "tools/call" and web.mode == "event":
            return self._pour(b"data: ", b"x" * (1 << 20), 1024, "text/event-stream")
        kind, _, way = web.mode.partition(" ")
        if message["method"] == "tools/call" and kind in CROWDS:
            data = f'{{"jsonrpc":"2.0","id":{number},"result":{CROWDS[kind]}}}'.encode()
            if way == "event":
                return self._pour(b': "\r\ndata: ', data + b"\r\n\r\n", 1, "text/event-stream")
            return self._send(200, data)
        try:
            said = {"result": respond(web.mode, message, web.state)}
        except LookupError as error:
            said = {"error": {"code": -32601, "message": str(error)}}
        headers = {}
        if message["method"] == "initialize":
            headers["mcp-session-id"] = f"session-{web.sessions}"
            web.sessions += 1
            web.known.add(headers["mcp-session-id"])
        data = json.dumps({"jsonrpc": "2.0", "id": number, **said}).encode()
        if message["method"] == "tools/call" and web.mode == "packed":
            headers["content-encoding"] = "gzip"
            data = gzip.compress(b"x" * (1 << 26))
        return self._send(200, data, **headers)

    def _send(self, status, data, **headers):
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)

    def _pour(self, head, block, count, kind="application/json"):
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        try:
            self.wfile.write(head)
            for _ in range(count):
                self.wfile.write(block)
        except OSError:
            pass  # whoever reads has had enough


@contextmanager
def web_server(mode, port=0):
    """That server, for as long as the block lasts."""
    web = Web(mode, port)
    thread = threading.Thread(target=web.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield web
    finally:
        web.stop()
        thread.join()

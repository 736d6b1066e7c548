"""The ASGI application: the features of the contract."""

import asyncio
import time


def application(answers):
    async def app(scope, receive, send):
        if scope["type"] == "http":
            await respond(answers, scope, receive, send)
        elif scope["type"] == "lifespan":
            await live(receive, send)

    return app


async def respond(answers, scope, receive, send):
    arrival = time.monotonic()
    method, path = scope["method"], scope["path"]
    status, body, delay = 404, b"", 0
    if answers.echoes(method, path):
        status, body = 200, await whole_body(receive)
    elif method == "GET":
        status, body, delay = answers.get(path)
    if delay:
        await asyncio.sleep(arrival + delay - time.monotonic())
    await send({"type": "http.response.start", "status": status,
                "headers": [(b"content-length", str(len(body)).encode())]})
    await send({"type": "http.response.body", "body": body})


async def whole_body(receive):
    parts = []
    while True:
        message = await receive()
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


async def live(receive, send):
    """Nothing to start or stop."""
    for word in ("startup", "shutdown"):
        await receive()
        await send({"type": f"lifespan.{word}.complete"})

"""The conversation of a client with wirelab, step by step; `engine` carries the steps out."""

import asyncio
import gc
import sys

from wirelab_endpoint import contract, results
from wirelab_endpoint.engine import Client
from wirelab_endpoint.precise_loop import run
from wirelab_endpoint.record import now


def play(job, make_driver):
    """`make_driver(job)` gives the library's part."""
    run(converse(job, make_driver))


async def converse(job, make_driver):
    driver = make_driver(job)
    job.transport.end()  # a remaining setting would be ignored, so it is unsupported
    if job.tls:
        job.tls.end()
    client = Client(job, driver)
    # Only now: the input of a refused client may end before its exit status is known.
    commands = contract.Commands(on_stop=contract.give_up)

    async def word(expected):
        await asyncio.get_running_loop().run_in_executor(None, commands.expect, expected)

    contract.emit("ready", configured={"threads": 1, **driver.configured()})

    await word("go")
    await client.check()
    await client.fill_ticket_store()
    await client.open_persistent()
    if job.warm_up:
        await client.send("warm-up", job.warm_up, now())
    client.begin()
    gc.collect()
    gc.freeze()  # the collector skips these objects in the window
    contract.emit("warm")

    await word("go")
    zero = now()
    await client.send("window", job.extent, zero)
    contract.emit("end", window_ns=max((record[5] for record in client.records), default=zero) - zero)

    await word("finish")
    await finish(client, zero)


async def finish(client, zero):
    transport = client.accounts.report()
    for link in client.pool.links:
        await client.close(link)
    client.driver.finish()
    if client.first_failure:
        print(f"the first failure: {client.first_failure}", file=sys.stderr)
    results.write(client.job.results, client.job.recording, client.records, zero)
    errors = results.count_errors(client.records)
    done = {"requests": len(client.records) - sum(errors.values()), "errors": errors,
            "configured": {"threads": 1, **client.driver.configured()}}
    contract.emit("done", **done, **({"transport": transport} if transport else {}))

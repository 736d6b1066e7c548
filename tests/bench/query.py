#!/usr/bin/env python3
"""How long the query of docs/results.md takes over ten million requests: `make bench-query`.

The samples are those of a hundred trials in ten cells, with the columns that the query reads and the others that every
request has. Times of the requests are log-normal with a fixed seed.

    query.py [REQUESTS]    default: 10000000
"""

import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

import duckdb

ROUNDS = 7
TRIALS, CELLS = 100, 10
SAMPLES = """
COPY (
  SELECT {trial} AS trial, {trial} // {cells} AS block, {trial} % {cells} AS cell,
    n * 100000 AS intended_ns, n * 100000 + 500 AS start_ns, NULL::BIGINT AS connected_ns, NULL::BIGINT AS handshake_ns,
    n * 100000 + 1000 + (exp(sqrt(-2 * ln(1 - random())) * cos(2 * pi() * random())) * 100000)::BIGINT AS last_byte_ns,
    0 AS bytes_out, 1024 AS bytes_in, 200 AS status, n % 8 AS connection, NULL::VARCHAR AS error
  FROM range({requests}) AS rows(n)
) TO '{path}' (FORMAT parquet)"""


def main():
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000_000
    text = (Path(__file__).resolve().parents[2] / "docs/results.md").read_text()
    query = re.search(r"^```sql\n(.*?)^```", text, re.DOTALL | re.MULTILINE).group(1)
    with tempfile.TemporaryDirectory() as folder:
        os.mkdir(f"{folder}/samples")
        duckdb.sql("SELECT setseed(0.5)").fetchall()
        for trial in range(TRIALS):
            path = f"{folder}/samples/trial-{trial:06}.parquet"
            duckdb.sql(SAMPLES.format(trial=trial, cells=CELLS, requests=requests // TRIALS, path=path))
        size = sum(file.stat().st_size for file in Path(folder, "samples").iterdir())
        os.chdir(folder)
        times = []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            assert len(duckdb.sql(query).fetchall()) == CELLS
            times.append(time.perf_counter() - begun)
        os.chdir("/")
    print(f"{requests} requests in {TRIALS} files, {size / 1e6:.0f} MB, DuckDB {duckdb.__version__}:")
    print(f"the query of docs/results.md takes {statistics.median(times):.2f} s"
          f" [{min(times):.2f}, {max(times):.2f}], {ROUNDS} rounds")


if __name__ == "__main__":
    main()

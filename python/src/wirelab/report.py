"""The report of a run. Generated from docs/report.schema.json by generate_types.sh."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypeAlias, TypedDict

Number: TypeAlias = float | None


TwoNumbers: TypeAlias = tuple[float, float]


ValueOfTrial: TypeAlias = tuple[int, float]


class Interval1(TypedDict):
    low: float
    high: float
    confidence: float


Interval: TypeAlias = Interval1 | None


Why: TypeAlias = Literal['too_few_blocks', 'too_noisy', 'correction', 'noise_floor', 'not_ended', 'no_values', 'unequal_failures', 'client_bound']


class Test(TypedDict):
    cell: int
    baseline: int | None
    blocks: int
    size: Number
    interval: Interval
    blocks_to_decide: NotRequired[int]
    p_met: float
    p_not_met: float
    verdict: Literal['met', 'not_met', 'cannot_tell']
    why: NotRequired[Why]


class Requirement(TypedDict):
    that: str
    verdict: Literal['met', 'not_met', 'cannot_tell']
    why: NotRequired[Why]
    inconclusive: Literal['pass', 'fail']
    tests: list[Test]


class Metric(TypedDict):
    name: str
    title: str
    vantage: str
    meaning: str
    unit: Literal['nanoseconds', 'bytes', 'bits_per_second', 'per_second', 'count', 'share']
    side: Literal['client', 'server', 'link', 'unknown']
    better: Literal['lower', 'higher']


class Estimates(TypedDict):
    median: float
    interval: Interval
    quartiles: TwoNumbers
    range: TwoNumbers
    values: list[ValueOfTrial]
    outliers: list[int]


class ByRequestItem(TypedDict):
    name: str
    weight: int


class Cell(TypedDict):
    cell: int
    label: str
    levels: dict[str, str]
    twin_of: int | None
    ok: int
    failed: int
    unsupported: int
    estimates: dict[str, Estimates]
    not_measured: dict[str, str]
    by_request: NotRequired[list[ByRequestItem]]


class Verdict(TypedDict):
    verdict: Literal['less', 'more', 'equivalent', 'cannot_tell']
    why: NotRequired[Why]


class Comparison(TypedDict):
    cell: int
    baseline: int
    aa: bool
    metric: str
    exploratory: NotRequired[bool]
    blocks: int
    ratio: Number
    interval: Interval
    noise_floor: Interval
    p: Number
    p_holm: Number
    verdict: Verdict


class Claim(TypedDict):
    id: str
    text: str
    verdict: Literal['holds', 'does_not_hold', 'cannot_tell', 'not_tested']
    effects: list[dict[str, Any]]
    untested: str | None


class WirelabReportVersion1(TypedDict):
    schema_version: Literal[1]
    requirements: list[Requirement]
    study: str
    title: str
    created: str | None
    preset: str | None
    set: list[str]
    lab: str | None
    seed: int
    stopped: Literal['precise', 'max_blocks', 'budget', 'interrupted', 'hopeless'] | None
    complete_blocks: int
    metrics: list[Metric]
    cells: list[Cell]
    comparisons: list[Comparison]
    contests: list[dict[str, Any]]
    pairs: list[dict[str, Any]]
    claims: list[Claim]
    warnings: list[dict[str, Any]]
    environment: dict[str, Any] | None
    table: NotRequired[dict[str, Any]]

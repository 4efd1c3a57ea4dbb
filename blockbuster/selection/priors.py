"""The numbers that decide which kernels are chosen, read once from priors.toml.

    [shortest_step]
    value = 128
    unit = "lanes of a step, at least, unless steps are large"
    source = "measured, 2026-11-23"
    machine = "h200"
    case = "steps of 64 instead of 128 lanes gained and lost up to 4%"

They are no numbers of a machine (those stand in machines/data): they say where one way to compute
begins to be better than another, as far as the closed form does not know, and how much is looked
at. No module of this package defines such a number of its own.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin, get_type_hints

ENTRIES = ("value", "unit", "source", "machine", "case")


@dataclass(frozen=True)
class Priors:
    """The values, by name; their units, sources and cases stand in priors.toml."""

    usual_stages: int
    usual_lanes: int
    float32_lanes: int
    float32_summed_lanes: int
    whole_lanes: int
    usual_warps: int
    filled_registers: int
    widest_lanes_per_thread: int
    row_lanes_per_thread: int
    usual_columns: int
    usual_elements: int
    usual_vector: int
    longest_line: int
    lanes_across: int
    row_lanes_of_more_warps: int
    deferred_lanes: int
    deferred_lanes_beside_dots: int
    chunk_iterations: int
    programs_per_processor: int
    chunk_saved_iterations: int
    combined_lanes: int
    combined_lanes_per_thread: int
    own_results_per_thread: int
    most_own_warps: int
    filled_programs_per_processor: int
    whole_blocks_of_masks: int
    whole_blocks_of_guards: int
    scanned_blocks: int
    emptied_blocks: float
    busy_rows: int
    joined_rows_factor: float
    joined_lines_factor: float
    longest_piece: int
    loads_written_out: int
    split_sum_elements: int
    group_sizes: tuple[int, ...]
    group_sizes_by_length: tuple[int, ...]
    group_time_part: float
    group_bytes_part: float
    descriptor_us: float
    descriptor_in_turn_us: float
    descriptor_tile_bytes: int
    bytes_under_way: int
    stage_time_factor: float
    shortest_step: int
    large_step_bytes: int
    shortest_large_step: int
    equal_time: float
    reads_worth_a_copy: int
    copied_elements: int
    most_in_turn: int
    in_turn_blocks: int
    in_turn_ahead: int
    programs_beside: int
    meetings_ahead: int
    numpy_tile_elements: int
    numpy_few_elements: int
    numpy_statement_elements: int
    numpy_piece_elements: int
    numpy_calls_of_statement: int
    numpy_small_product: int
    numpy_functions: Mapping[str, float]
    most_schedules: int
    refined_arrangements: int
    walked_schedules: int
    own_walked_schedules: int
    hopeless_whole_factor: float
    searched_gain: float
    searched_gain_more: float
    searched_gain_kernels: int
    hopeless_factor: float
    hopeless_lanes_factor: float
    near_schedules_factor: float
    jammed_room: float
    split_room: float
    jammed_bytes_part: float
    widest_dot_lanes: int
    narrowest_dot_lanes: int
    running_lanes: int
    widest_row_lanes: int
    first_row_lanes: int
    rows_cut_alone: int
    stages_tried: tuple[int, ...]
    deep_stages: int
    held_elements: int
    held_elements_without_dots: int
    parted_elements: int
    least_warps_without_dots: int
    most_warps_without_dots: int
    walking_programs: tuple[int, ...]
    walking_room: float
    repeated_arithmetic: int
    apart_forms: int
    operands_apart_forms: int
    stored_large_factor: float
    glance_block: int
    glance_far: float
    lanes_along: int
    whole_elements: int
    whole_elements_beside_dots: int
    whole_dims_tried: int
    most_whole_dims: int
    register_room: float
    combining_us: float
    cost_optimism: float
    beam: int
    remembered_products: int
    window_extents: tuple[int, ...]
    window_steps: int
    priced_parts: int
    nodes_an_operation: float
    many_nodes: int
    few_us: float
    few_us_on_cpu: float
    little_to_do_factor: float
    library_factor: float
    library_attention_factor: float
    attention_by_host_us: float
    elements_at_once: tuple[int, ...]
    kept_classes: int
    tried_sizes: int
    sizes_of_each_dim: int
    numpy_rows: Mapping[str, tuple[int, ...]]
    contenders: int
    schedules_tried: int
    few_bytes: int
    few_operations: int
    slow_factor: float
    near_programs_factor: float
    tiles_halved: int
    operations_of_rows: Mapping[str, int]
    masked_part: float
    large_array_factor: int
    usual_over_bound: float
    least_of_estimate: float
    doubted_units: int
    part_rows: int
    part_columns: int
    shared_estimate_part: float
    several_parts_factor: float
    piece_elements: int
    part_caps: tuple[int, ...]
    plan_steps: int
    whole_program_factor: float
    overlapping_values: int
    unsafe_us: float


def read_priors(text: str) -> Priors:
    """The values of a file with an entry for each field of ``Priors``.

    Raises ValueError for missing and unknown names, for entries without one of ``ENTRIES``, and for
    values of another type than the field's.
    """
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)
    types = get_type_hints(Priors)
    for word, names in (("unknown", tables.keys() - types), ("missing", types.keys() - tables)):
        if names:
            raise ValueError(f"priors.toml: {word} {', '.join(sorted(names))}")
    return Priors(**{name: _value(name, tables[name], kind) for name, kind in types.items()})


def _value(name: str, table: Mapping[str, Any], kind: Any) -> Any:
    """The value of an entry; lists become tuples, so that nothing can change them."""
    for entry in ENTRIES:
        if table.get(entry) in (None, ""):
            raise ValueError(f"priors.toml: {name} has no {entry}")
    if unknown := sorted(table.keys() - ENTRIES):
        raise ValueError(f"priors.toml: {name} has an unknown entry {unknown[0]}")
    value = table["value"]
    if isinstance(value, Mapping):
        value = {key: _fixed(one) for key, one in value.items()}
    value = _fixed(value)
    wanted = get_origin(kind) or kind
    if not isinstance(value, wanted) or isinstance(value, bool):
        raise ValueError(f"priors.toml: {name} is {value!r}, not of type {wanted.__name__}")
    return value


def _fixed(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


PRIORS = read_priors(Path(__file__).with_name("priors.toml").read_text(encoding="utf-8"))

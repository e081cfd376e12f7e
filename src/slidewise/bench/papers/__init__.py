"""The experiments of the papers, one suite each: `slidewise bench daba-2015-table-1`, `slidewise bench daba-2015` for all of a
paper, `slidewise bench papers` for all of all.

Each has its sizes (`--quick`, full), its plot in the paper's form, and the paper's claims judged by the rows. A suite is named
after the paper and the table or figure. `SUITES` maps the name to `module:NAME` of the Suite.
"""

_HERE = "slidewise.bench.papers"

SUITES: dict[str, str] = {
    "daba-2015-table-1": f"{_HERE}.daba_2015:TABLE_1",
    "daba-2015-fig-18-top": f"{_HERE}.daba_2015:TOP",
    "daba-2015-fig-18-bottom": f"{_HERE}.daba_2015_latency:BOTTOM",
    "daba-2015-table-2": f"{_HERE}.daba_2015_latency:TABLE_2",
    "slickdeque-2018-fig-10": f"{_HERE}.slickdeque_2018:FIG_10",
    "slickdeque-2018-fig-11": f"{_HERE}.slickdeque_2018:FIG_11",
    "slickdeque-2018-fig-12": f"{_HERE}.slickdeque_2018:FIG_12",
    "slickdeque-2018-fig-13": f"{_HERE}.slickdeque_2018:FIG_13",
    "slickdeque-2018-fig-14": f"{_HERE}.slickdeque_2018_costs:FIG_14",
    "slickdeque-2018-fig-15": f"{_HERE}.slickdeque_2018_costs:FIG_15",
    "reactive-aggregator-2015-table-3": f"{_HERE}.reactive_2015:TABLE_3",
    "reactive-aggregator-2015-fig-6": f"{_HERE}.reactive_2015:FIG_6",
    "reactive-aggregator-2015-fig-7": f"{_HERE}.reactive_2015:FIG_7",
    "reactive-aggregator-2015-fig-8": f"{_HERE}.reactive_2015_windows:FIG_8",
    "reactive-aggregator-2015-fig-9": f"{_HERE}.reactive_2015_windows:FIG_9",
    "reactive-aggregator-2015-fig-10": f"{_HERE}.reactive_2015_slides:FIG_10",
    "reactive-aggregator-2015-fig-11": f"{_HERE}.reactive_2015_slides:FIG_11",
    "reactive-aggregator-2015-table-4": f"{_HERE}.reactive_2015_slides:TABLE_4",
    "reactive-aggregator-2015-fig-12": f"{_HERE}.reactive_2015_windows:FIG_12",
}

SUITES |= {
    "fiba-2019-fig-11": f"{_HERE}.fiba_2019:FIG_11",
    "fiba-2019-fig-12": f"{_HERE}.fiba_2019_rounds:FIG_12",
    "fiba-2019-fig-13": f"{_HERE}.fiba_2019_rounds:FIG_13",
    "fiba-2019-fig-14": f"{_HERE}.fiba_2019:FIG_14",
    "fiba-2019-fig-15": f"{_HERE}.fiba_2019_real:FIG_15",
    "fiba-2019-figs-16-18": f"{_HERE}.fiba_2019_engine:FIGS_16_TO_18",
    "bulk-fiba-2023-fig-7": f"{_HERE}.bulk_fiba_2023:FIG_7",
    "bulk-fiba-2023-fig-8": f"{_HERE}.bulk_fiba_2023:FIG_8",
    "bulk-fiba-2023-fig-9": f"{_HERE}.bulk_fiba_2023:FIG_9",
    "bulk-fiba-2023-fig-10": f"{_HERE}.bulk_fiba_2023:FIG_10",
    "bulk-fiba-2023-fig-11": f"{_HERE}.bulk_fiba_2023_throughput:FIG_11",
    "bulk-fiba-2023-fig-12": f"{_HERE}.bulk_fiba_2023_throughput:FIG_12",
    "bulk-fiba-2023-fig-13": f"{_HERE}.bulk_fiba_2023_throughput:FIG_13",
    "bulk-fiba-2023-fig-14": f"{_HERE}.bulk_fiba_2023_throughput:FIG_14",
    "bulk-fiba-2023-section-7-3": f"{_HERE}.bulk_fiba_2023_memory:SECTION_7_3",
    "bulk-fiba-2023-fig-15": f"{_HERE}.bulk_fiba_2023_real:FIG_15",
    "bulk-fiba-2023-fig-16": f"{_HERE}.fiba_2019_real:FIG_16",
    "bulk-fiba-2023-fig-17": f"{_HERE}.fiba_2019_engine:FIG_17_BULK",
}

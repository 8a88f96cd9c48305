"""The report on the prefix cache as tables for people."""

from __future__ import annotations

from collections.abc import Iterator

from rich.table import Table

from smartcache_eval.prefix_report import PrefixReport


def tables(report: PrefixReport) -> Iterator[Table | str]:
    """First token, by way; conversations; costs."""
    yield _cases(report)
    yield _conversation(report)
    yield _crowds(report)
    yield f"cost where nothing hits: {report.overhead_at_zero_hits:+.2%} of the request"
    yield f"a token after the first: {report.decode_ratio:.2f} × the time of transformers' own loop"


def _cases(report: PrefixReport) -> Table:
    columns = ("by", "shared + new", "cold ms", "warm ms", "warm / cold", "ideal", "placing / forward", "equals cold")
    table = Table(*columns, title="first token after a beginning that is known")
    for column in table.columns[1:]:
        column.justify = "right"
    for case in report.cases:
        size, ideal = f"{case.shared:,} + {case.new}", f"{case.ideal:.3f}"
        ours = (_ms(case.cold_s), _ms(case.warm_s), f"{case.ratio:.3f}", ideal)
        table.add_row("SmartCache", size, *ours, f"{case.placed_share:.1%}", _yes(case.equals_cold))
        ratio = f"{case.transformers_warm_s / case.transformers_cold_s:.3f}"
        own = (_ms(case.transformers_cold_s), _ms(case.transformers_warm_s), ratio, ideal)
        table.add_row("a copied DynamicCache", size, *own, "", "")
    for peer in report.peers:
        for other in peer.cases:
            size, ratio = f"{other.shared:,} + {other.new}", f"{other.ratio:.3f}"
            figures = (_ms(other.cold_s), _ms(other.warm_s), ratio, f"{other.new / (other.shared + other.new):.3f}")
            table.add_row(f"{peer.name} {peer.version}", size, *figures, "", _yes(other.equals_cold))
        if peer.trouble:
            table.add_row(f"{peer.name} {peer.version}", peer.trouble)
    return table


def _conversation(report: PrefixReport) -> Table:
    talk = report.conversation
    table = Table("turn", "prompt tokens", "of the previous turn reused", "first token ms", title="one conversation")
    turns = zip(talk.prompt_tokens, talk.reused_share, talk.first_token_s, strict=True)
    for number, (tokens, share, seconds) in enumerate(turns, 1):
        table.add_row(str(number), f"{tokens:,}", f"{share:.1%}" if number > 1 else "", _ms(seconds))
    return table


def _crowds(report: PrefixReport) -> Table:
    columns = ("conversations", "policy", "prompt tokens reused", "first token ms", "without a cache ms")
    table = Table(*columns, title="conversations in turn, room for half of them")
    for crowd in report.crowded:
        times = _ms(crowd.first_token_s), _ms(crowd.no_cache_first_token_s)
        table.add_row(str(crowd.conversations), crowd.policy, f"{crowd.reused_share:.1%}", *times)
    return table


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:,.1f}"


def _yes(equal: bool) -> str:
    return "yes" if equal else "no"

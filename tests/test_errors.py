import pytest

from blockbuster import errors
from blockbuster.errors import message

LISTING = "\n".join(f"line {number}" for number in range(10))


def test_shows_two_lines_on_either_side_of_the_mark():
    text = message("wrong", listing=LISTING, mark=4)

    assert text.splitlines() == [
        "wrong",
        "    line 2",
        "    line 3",
        ">   line 4",
        "    line 5",
        "    line 6",
    ]


@pytest.mark.parametrize(("mark", "shown"), [(0, 3), (9, 3), (1, 4)])
def test_window_stops_at_the_ends_of_the_listing(mark, shown):
    assert len(message("wrong", listing=LISTING, mark=mark).splitlines()) == 1 + shown


def test_shows_the_whole_listing_without_a_mark():
    assert message("wrong", listing=LISTING).count("\n") == 10


def test_order_is_what_value_listing_origin_hint():
    text = message("what", value="", listing="a", mark=0, origin="from here", hint="two\nlines")

    assert text == "what\n  value: ''\n>   a\n  from here\n  hint: two\n        lines"


def test_every_public_error_is_a_blockbuster_error():
    found = [
        name
        for name, item in vars(errors).items()
        if isinstance(item, type) and issubclass(item, errors.BlockbusterError)
    ]

    assert found == [
        "BlockbusterError",
        "TraceError",
        "VerifyError",
        "ParseError",
        "RuleError",
        "FusionError",
        "EmitError",
        "LaunchError",
        "DrawError",
    ]

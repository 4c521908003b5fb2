"""Which kinds of claims lose weight, as lines of `weights.toml`: `python -m bench.fading JSON`, where JSON is what
`moot evaluate walk --json` wrote. Of the tuning dates alone.
"""

import json
import sys
from pathlib import Path

SURELY, PERHAPS = 0.5, 0.75
"""What is left where the interval of the difference is below zero, and where it might be chance."""


def main(file: str) -> int:
    measured = json.loads(Path(file).read_text("utf-8"))
    kinds = {kind["name"]: kind for kind in measured["figures"]["tuning"]["tables"]["kinds"]}
    for name in sorted(measured["fading"]):
        halves, horizon = kinds[name]["halves"], kinds[name]["horizon"]
        high = halves["more"]["high"]
        weight = SURELY if high is not None and high < 0 else PERHAPS
        said = f"stronger half {halves['stronger']:+.1%}, weaker half {halves['weaker']:+.1%} over {horizon} sessions"
        print(f'"{name}" = {{ weight = {weight}, reason = "Tuning years: {said}." }}')
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

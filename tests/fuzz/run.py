"""Runs the libFuzzer targets of a build directory.

usage: run.py BUILD check            replay every corpus and finding, then fuzz for a seeded minute in all
       run.py BUILD MINUTES [TARGET]  fuzz each target that long; what it learns goes into the corpus

The last line has the figures. Exits with 1 where a target found something, which is then in findings/<target>/."""

import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TARGETS = ("ptx", "code", "arguments")
# Those with Python inside look for leaks themselves: what Python keeps is no leak.
OPTIONS = {"arguments": ["-detect_leaks=0", "-max_len=512"]}
SEEDS = {"ptx": [HERE.parent / "emulator" / "frontend" / "corpus", HERE.parent / "emulator" / "ptx"]}


def run(build: pathlib.Path, target: str, options: list[str], paths: list[pathlib.Path]) -> tuple[int, bool]:
    """Runs one target; how many inputs it ran, and whether it found nothing."""
    findings = HERE / "findings" / target
    findings.mkdir(parents=True, exist_ok=True)
    command = [str(build / "tests" / "fuzz" / f"fuzz_{target}"), "-timeout=5", "-rss_limit_mb=2048", *options]
    command += OPTIONS.get(target, [])
    command += ["-print_final_stats=1", f"-artifact_prefix={findings}/", *map(str, paths)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    counted = re.search(r"stat::number_of_executed_units:\s*(\d+)", done.stderr)
    if done.returncode != 0:
        print(f"{target}:\n{done.stderr[-4000:]}")
    return (int(counted[1]) if counted else 0), done.returncode == 0


def main(arguments: list[str]) -> int:
    build, mode = pathlib.Path(arguments[0]), arguments[1]
    targets = arguments[2:] or list(TARGETS)
    inputs = failures = kept = 0
    for target in targets:
        corpus = HERE / "corpus" / target
        past = [path for path in (corpus, HERE / "findings" / target, *SEEDS.get(target, [])) if path.is_dir()]
        kept += sum(1 for folder in past for path in folder.iterdir() if path.is_file())
        if mode == "check":
            replayed, is_clean = run(build, target, ["-runs=0", "-seed=1"], past)
            inputs += replayed
            failures += not is_clean
            options = ["-seed=1", f"-max_total_time={60 // len(targets)}"]
            with tempfile.TemporaryDirectory() as fresh:
                count, is_clean = run(build, target, options, [pathlib.Path(fresh), *past])
        else:
            corpus.mkdir(parents=True, exist_ok=True)
            options = [f"-max_total_time={int(float(mode) * 60)}"]
            count, is_clean = run(build, target, options, [corpus, *past[1:]])
        inputs += count
        failures += not is_clean
    print(f"targets {len(targets)}, inputs run {inputs}, corpus {kept}, findings {failures}")
    return failures > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

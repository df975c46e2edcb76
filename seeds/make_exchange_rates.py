"""Makes exchange_rates.csv from the history of reference rates that the European Central Bank publishes.

    python seeds/make_exchange_rates.py eurofxref-hist.zip

Takes the days since the oldest prices that are kept, and the currencies that have a rate on any of them.
"""

import argparse
import csv
import io
from pathlib import Path
from zipfile import ZipFile

SEEDS = Path(__file__).parent
FIRST_DAY = "2023-01-01"


def main() -> None:
    """Write exchange_rates.csv, the oldest day first."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("history", type=Path, help="eurofxref-hist.zip")
    with ZipFile(parser.parse_args().history) as archive:
        (name,) = archive.namelist()
        header, *rows = csv.reader(io.StringIO(archive.read(name).decode()))
    days = sorted((row for row in rows if row[0] >= FIRST_DAY), key=lambda row: row[0])
    columns = sorted(
        (currency, number)
        for number, currency in enumerate(header)
        if number and currency and any(row[number] != "N/A" for row in days)
    )
    source = f"ecb-reference-rates-{days[-1][0]}"
    with (SEEDS / "exchange_rates.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["day", *(currency for currency, _ in columns), "source"])
        for row in days:
            rates = (row[number].replace("N/A", "") for _, number in columns)
            writer.writerow([row[0], *rates, source])


if __name__ == "__main__":
    main()

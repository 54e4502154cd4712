"""Tables in files, so that users bring their own: Parquet, CSV, TSV."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from creperie.core import DataError, UsageError, draft_of

SUFFIXES = (".parquet", ".csv", ".tsv")


def read_table(path: str | Path) -> pa.Table:
    """A table from a file; its ending says what it is."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    file = Path(path)
    _check_suffix(file)
    if not file.is_file():
        raise UsageError("there is no such file", where=str(file))
    try:
        if file.suffix == ".parquet":
            return pq.read_table(file)
        separator = "\t" if file.suffix == ".tsv" else ","
        # R writes NA for what is missing; a caption in quotes may be any word
        convert = csv.ConvertOptions(
            strings_can_be_null=True, quoted_strings_can_be_null=False, null_values=["", "NA", "NaN", "nan"]
        )
        parse = csv.ParseOptions(delimiter=separator, newlines_in_values=True)
        return csv.read_csv(file, parse_options=parse, convert_options=convert)
    except (OSError, pa.ArrowException) as e:
        raise DataError(f"cannot be read as a table ({' '.join(str(e).split())[:160]})", where=str(file)) from None


def write_table(table: pa.Table, path: str | Path) -> Path:
    """Write a table: there whole, or not at all."""
    import pyarrow.csv as csv
    import pyarrow.parquet as pq

    file = Path(path)
    _check_suffix(file)
    with draft_of(file) as draft:
        if file.suffix == ".parquet":
            pq.write_table(table, draft, compression="zstd")
        else:
            options = csv.WriteOptions(delimiter="\t" if file.suffix == ".tsv" else ",")
            csv.write_csv(table, draft, options)
    return file


def _check_suffix(file: Path) -> None:
    if file.suffix not in SUFFIXES:
        raise UsageError("this is not a name of a table", where=str(file), hint="end it in " + ", ".join(SUFFIXES))

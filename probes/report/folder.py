"""Writing of the report of one or several study folders.

A report is made from the files of a study, so it can be written while cells are still running or after some have
failed. Equal input gives equal bytes, because the report has the date of the run and no paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from probes.report.files import ReportPaths, check_folder, write_files
from probes.study.record import STUDY
from synthlang.errors import InputError
from synthlang.files import only_writer
from synthlang.progress import Say, unheard
from synthlang.wording import plural

if TYPE_CHECKING:
    from probes.report.data import Study

OTHER = "name another folder for the joint report"


def write_report(folder: Path, say: Say = unheard, says_excluded: bool = True) -> ReportPaths:
    """Write the report of the study in ``folder``, and return the paths of the report.

    Args:
        folder: The folder of the study, which must have study.json. The report notes any other missing file.
        say: Function that receives a line for each unreadable file of claims or papers, and one about excluded runs.
        says_excluded: False if the caller shows the line about excluded runs itself.

    Raises:
        InputError: study.json, a table or the config of a run cannot be read.
        DiskError: A file cannot be written.
    """
    from probes.report.data import read_study  # with pandas

    study = read_study(folder)
    return _write(study, [study], _under(study), folder, say, says_excluded)


def write_joined_report(folders: Sequence[Path], out: Path, say: Say = unheard) -> ReportPaths:
    """Write one report of all ``folders`` into the folder ``out``, and return the paths of the report.

    Args:
        folders: Folders of the studies.
        out: The folder of the report.
        say: Function that receives a line for each unreadable file of claims or papers, and one about excluded runs.

    Raises:
        InputError: ``folders`` is empty, or a folder holds no readable study of this version. The error is also raised
            if ``out`` is a file or a study folder, holds files other than a report, or is written by another process.
            Further reasons are those of ``write_report`` on the content of the studies.
        DiskError: A file cannot be written.
    """
    from probes.report.data import read_study  # with pandas
    from probes.report.join import joined, same_together

    if not folders:
        raise InputError("no study folder is given", code="missing")
    if any(folder.resolve() == out.resolve() for folder in folders):
        raise InputError("is one of the study folders", out, hint=OTHER, code="conflict")
    if (out / STUDY).exists():
        raise InputError(
            "is the folder of a study, which can hold only its own report", out, hint=OTHER, code="conflict"
        )
    check_folder(out)
    studies = same_together([read_study(folder) for folder in folders])
    under = "Studies " + "; ".join(_under(study) for study in studies)
    with only_writer(out):
        return _write(joined(studies), studies, under, out, say)


def _under(study: Study) -> str:
    """Return the line below the title: name, scale, date, version of synthlang and processor."""
    environment = study.environment
    version, cores = environment.get("synthlang"), environment.get("cores")
    cpu = ", ".join(filter(None, (environment.get("cpu"), cores and plural(int(cores), "core"))))
    told = (study.name, study.scale, environment.get("date"), version and f"synthlang {version}", cpu)
    return " · ".join(str(part) for part in told if part)


def _write(
    study: Study, studies: Sequence[Study], under: str, out: Path, say: Say, says_excluded: bool = True
) -> ReportPaths:
    from probes.report.judged import compared
    from probes.report.sections import files_of, sections  # with matplotlib

    comparisons = compared(studies)
    for note in filter(None, (*comparisons.notes, study.told_failed if says_excluded else "")):
        say(note)
    out.mkdir(parents=True, exist_ok=True)
    return write_files(out, dict(files_of(study.title, under, sections(study, comparisons))))

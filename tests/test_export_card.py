"""Cards that the hub's own reader understands, and uploads through a stand-in for the hub."""

import pytest
from huggingface_hub import DatasetCard
from hypothesis import given
from hypothesis import strategies as st

from synthlang.derive import derive_command, rebuild_command
from synthlang.errors import InputError
from synthlang.export import export_language, push_to_hub, run, verify_manifest
from synthlang.export.card import CardConfig, card_header, code_block, markdown_table, size_category, write_card
from synthlang.language import parse_language
from synthlang.sources import open_source

SOURCE = "builtin:mini-english?types=500&sentences=20&dev=5&test=5"
CONFIG = CardConfig("default", {"train": "data/train-*.parquet", "test": "data/test-*.parquet"}, default=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("card") / "d"
    export_language(open_source(SOURCE), parse_language("trans+inv"), folder, source_name=SOURCE)
    return folder


def test_the_hub_reads_the_header_of_an_export(folder):
    data = DatasetCard.load(folder / "README.md").data.to_dict()
    assert data["license"] == "apache-2.0" and data["size_categories"] == ["n<1K"] and data["language"][-1] == "art"
    assert [(c["config_name"], c.get("default", False)) for c in data["configs"]] == [
        ("parent", False),
        ("derived", True),
        ("parallel", False),
    ]
    for config in data["configs"]:
        for files in config["data_files"]:
            assert list(folder.glob(files["path"])), files


def test_the_card_says_what_was_done(folder):
    card = (folder / "README.md").read_text()
    for part in ("1. **transliterate**", "2. **invert**", "| train | 20 | 20 | 0 |", "--language language.yaml"):
        assert part in card
    for config in ("parent", "derived", "parallel"):
        assert f'`{config}`:\n\n```json\n{{"id": ' in card


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("CC-BY-SA-4.0", {"license": "cc-by-sa-4.0"}),
        ("unknown", {"license": "unknown"}),
        ("cc-by-nc-sa-3.0-us", {"license": "other", "license_name": "cc-by-nc-sa-3.0-us"}),
    ],
)
def test_licences(licence, expected):
    header = card_header([CONFIG], pretty_name="x", licence=licence)
    assert {k: v for k, v in header.items() if k.startswith("license")} == expected


@pytest.mark.parametrize("licence", ["", "a b", "-x", "x" * 65, "mit\n", "[mit]"])
def test_what_is_no_licence(licence):
    with pytest.raises(InputError, match="must be an SPDX id"):
        card_header([CONFIG], pretty_name="x", licence=licence)


@pytest.mark.parametrize(
    ("rows", "name"), [(0, "n<1K"), (999, "n<1K"), (1000, "1K<n<10K"), (10**6, "1M<n<10M"), (10**13, "n>1T")]
)
def test_sizes(rows, name):
    assert size_category(rows) == name


@given(st.text(max_size=30), st.text(max_size=60))
def test_no_name_or_text_breaks_a_card(name, text):
    header = card_header([CONFIG], pretty_name=name, tags=[name], task_categories=["token-classification"])
    card = write_card("T", header, [("", "start"), ("A", code_block(text)), ("B", markdown_table(("a",), [(text,)]))])
    assert DatasetCard(card.replace("\r", " ")).data.to_dict()["pretty_name"] == name or "\r" in name
    fence = code_block(text).split("\n")[0]
    assert len(fence) > max((len(run) for run in text.replace("`", " ` ").split(" ") if set(run) == {"`"}), default=0)
    assert fence not in text
    assert markdown_table(("a",), [(text,)]).count("\n") == 2


def test_a_table_by_hand():
    table = markdown_table(("what", "n"), [("a|b", 12345), ("c\nd", 6)])
    assert table == "| what | n |\n|---|---:|\n| a\\|b | 12,345 |\n| c d | 6 |"


class Api:
    def __init__(self, error=None):
        self.calls, self.error = [], error

    def create_repo(self, repo_id, **options):
        self.calls.append(("create", repo_id, options))
        return f"https://hub.invalid/datasets/{repo_id}"

    def upload_folder(self, **options):
        self.calls.append(("upload", options))
        if self.error:
            raise self.error


def test_a_verified_folder_is_uploaded(folder):
    api = Api()
    assert push_to_hub(folder, "me/data", api=api) == "https://hub.invalid/datasets/me/data"
    (_, repo, created), (_, uploaded) = api.calls
    assert (repo, created) == ("me/data", {"repo_type": "dataset", "private": True, "exist_ok": True})
    assert uploaded["folder_path"] == str(folder) and uploaded["repo_id"] == "me/data"
    assert uploaded["repo_type"] == "dataset"


def test_nothing_is_sent_of_a_changed_folder(folder, tmp_path):
    api = Api()
    other = tmp_path / "d"
    export_language(open_source(SOURCE), parse_language("inv"), other, source_name=SOURCE)
    (other / "language.yaml").write_text("name: x\n")
    with pytest.raises(InputError, match="differs from the manifest"):
        push_to_hub(other, "me/data", api=api)
    with pytest.raises(InputError, match="no such file"):
        push_to_hub(tmp_path, "me/data", api=api)
    assert api.calls == []


@pytest.mark.parametrize("name", ["", "a/b/c", "../x", "a b", "x" * 97])
def test_wrong_repository_names(name, folder):
    api = Api()
    with pytest.raises(InputError, match="must be NAME or OWNER/NAME"):
        push_to_hub(folder, name, api=api)
    assert api.calls == []


@pytest.mark.parametrize("error", [ConnectionError("offline\nmore"), ValueError(""), RuntimeError("403 Forbidden")])
def test_what_the_hub_refuses_is_one_line(error, folder):
    with pytest.raises(InputError) as raised:
        push_to_hub(folder, "me/data", api=Api(error))
    assert str(raised.value).startswith("hub repository me/data: cannot upload: ")
    assert "\n" not in str(raised.value) and not str(raised.value).endswith(": ")


def test_offline_the_real_api_is_one_line_too(folder):
    with pytest.raises(InputError, match="hub repository me/data: cannot upload: "):
        push_to_hub(folder, "me/data", token="hf_none")


def test_the_command_shows_sentences_and_says_what_happened(tmp_path, capsys):
    shown = derive_command(SOURCE, "inv", tmp_path / "d", licence="mit", examples=2)
    before = next(open_source(SOURCE).batches("train")).texts()[:2]
    assert [a for a, _ in shown] == before and [sorted(b.split()) for _, b in shown] == [
        sorted(a.split()) for a in before
    ]
    err = capsys.readouterr().err
    assert "train 20 sentences, dev 5 sentences, test 5 sentences" in " ".join(err.split())
    assert verify_manifest(tmp_path / "d")["licence"] == "mit"


def test_a_language_of_tokens_needs_a_vocabulary_and_travels_to_workers(tmp_path, monkeypatch):
    monkeypatch.setattr(run, "cores", lambda: 2)
    language = tmp_path / "l.yaml"
    language.write_text("name: tokens\ntransforms: [{kind: invert, unit: token}]\n")
    for workers in (1, 2):
        derive_command(SOURCE, str(language), tmp_path / str(workers), vocabulary="400", workers=workers)
    manifests = [verify_manifest(tmp_path / str(workers)) for workers in (1, 2)]
    assert manifests[0] == manifests[1] and "--vocabulary 400" in manifests[0]["command"]
    with pytest.raises(InputError, match="needs a vocabulary"):
        derive_command(SOURCE, str(language), tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_the_command_in_the_card_is_quoted():
    options = {"parser": "spacy:x y", "counts": None}
    found = rebuild_command("text:a b", options)
    assert found == "synthlang derive 'text:a b' --language language.yaml --parser 'spacy:x y' --out DIR"

"""The ids of a run are those of a checkpoint's own tokenizer: BERT's, RoBERTa's and XLM-R's kind."""

import contextlib
import json
import shutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from synthlang.corpus import Corpus
from synthlang.errors import InputError
from synthlang.language import PARENT, parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.store import Store
from synthlang.vocabularies import Specials, VocabularySpec, build_id_space, hf_id_space
from synthlang.vocabularies.checkpoint import read_checkpoint
from tests.refusals import refused
from tests.tokenizer_folders import KINDS, encoded_by, make_folder

WORDS = [
    *["the", "cats", "Straße", "don't", "unfortunately", "3.14", "漢字", "<mask>", "[MASK]", "x_y", "é"],
    "\u0301",
    "Ġ",
]
word = st.one_of(
    st.sampled_from(WORDS), st.text(st.characters(exclude_categories=["Cs", "Z", "Cc"]), min_size=1, max_size=12)
)


@pytest.fixture(scope="module")
def source():
    return MiniEnglish(types=500, sentences=300, dev=30, test=0)


@pytest.fixture(scope="module")
def folders(tmp_path_factory, source):
    lines = [text for batch in source.batches("train") for text in batch.texts()]
    root = tmp_path_factory.mktemp("checkpoints")
    return {kind: make_folder(kind, lines, 400, root / kind) for kind in KINDS}


@pytest.fixture(scope="module")
def spaces(folders, source, tmp_path_factory):
    members = [("en", source, PARENT), ("trans", source, parse_language("trans:0.5+inv"))]
    store = Store(tmp_path_factory.mktemp("store"))
    return {kind: hf_id_space(str(folder), members, store) for kind, folder in folders.items()}


def changed(folder, target, name, **values):
    """A copy of a folder with some keys of a JSON file set (None: taken out)."""
    shutil.copytree(folder, target)
    path = target / name
    config = json.loads(path.read_text(encoding="utf-8")) | values
    path.write_text(json.dumps({k: v for k, v in config.items() if v is not None}), encoding="utf-8")
    return target


@pytest.fixture(scope="module")
def references(folders):
    from transformers import AutoTokenizer

    options = {"roberta": {"add_prefix_space": True}}
    return {kind: AutoTokenizer.from_pretrained(path, **options.get(kind, {})) for kind, path in folders.items()}


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=100)
@given(words=st.lists(word, min_size=1, max_size=8))
def test_ids_are_those_of_auto_tokenizer_on_words(kind, spaces, references, words):
    member = spaces[kind][0].languages[0]
    encoded = member.encode(Corpus.of_words([words]))
    expected = references[kind](words, is_split_into_words=True, add_special_tokens=False)
    specials = member.specials  # control tokens that a text spells are unknown ones
    text = [specials.unk if i in specials.control else i for i in expected["input_ids"]]
    assert encoded.ids.tolist() == text and specials == spaces[kind][0].specials
    places = np.repeat(np.arange(len(words)), np.diff(encoded.word_offsets))
    assert places.tolist() == expected.word_ids()


@pytest.mark.parametrize("kind", KINDS)
def test_the_space_of_a_checkpoint(kind, spaces, references, source):
    space, languages, extension = spaces[kind]
    reference = references[kind]
    assert extension is None and space.size == len(reference) and space.translations(1) is None
    assert space.specials == (Specials(2, 0, 3, 1, 4) if kind == "bert" else Specials(0, 1, 2, 3, 4))
    assert space.languages[0].ids.tolist() == list(range(len(reference)))
    assert space.languages[0].fingerprint == space.languages[1].fingerprint
    derived = languages[1].derive(next(source.batches("dev")))
    text = space.languages[1].encode(derived)
    for row, line in enumerate(derived.texts()):
        a, b = text.word_offsets[derived.offsets[row : row + 2]]
        assert text.ids[a:b].tolist() == reference(line.split(), is_split_into_words=True).input_ids[1:-1]


def test_saved_folders_give_transformers_the_same_ids(spaces, tmp_path):
    words = [w for w in WORDS if "mask" not in w.lower()]  # in a text it depends on what stands before it
    asked = []
    for kind, (space, _, _) in spaces.items():
        space.languages[0].save(tmp_path / kind)
        shown = {"bert": "bert", "roberta": "roberta", "xlmr": "xlm-roberta"}[kind]
        (tmp_path / kind / "config.json").write_text(json.dumps({"model_type": shown}), encoding="utf-8")
        asked.append((tmp_path / kind, words))
    for (space, _, _), found in zip(spaces.values(), encoded_by(asked), strict=True):
        encoded = space.languages[0].encode(Corpus.of_words([words]))
        assert found["apart"] == [i.tolist() for i in np.split(encoded.ids, encoded.word_offsets[1:-1])]
        assert found["text"] == [space.specials.bos, *encoded.ids.tolist(), space.specials.eos]
        assert found["specials"] == list(space.specials.all) and found["size"] == space.size


def test_a_folder_of_ours_is_a_checkpoint_too(source, tmp_path):
    store = Store(tmp_path / "store")
    ours, _ = build_id_space(VocabularySpec(kind="joint", size=400), [("en", source, PARENT)], store)
    ours.languages[0].save(tmp_path / "ours")
    (tmp_path / "ours" / "config.json").write_text('{"model_type": "roberta", "vocab_size": 400}', encoding="utf-8")
    space, _, _ = hf_id_space(str(tmp_path / "ours"), [("en", source, PARENT)], store)
    batch = next(source.batches("dev"))
    assert (space.languages[0].encode(batch).ids == ours.languages[0].encode(batch).ids).all()
    assert space.specials == ours.specials and space.size == ours.size


@pytest.mark.parametrize("kind", ["bert", "roberta"])
def test_files_from_before_tokenizer_json(kind, folders, spaces, tmp_path):
    model = json.loads((folders[kind] / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    ordered = sorted(model["vocab"], key=model["vocab"].__getitem__)
    if kind == "bert":
        (tmp_path / "vocab.txt").write_text("\n".join(ordered) + "\n", encoding="utf-8")
        (tmp_path / "tokenizer_config.json").write_text('{"do_lower_case": false}', encoding="utf-8")
    else:
        (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]), encoding="utf-8")
        merges = "\n".join(" ".join(pair) for pair in model["merges"])
        (tmp_path / "merges.txt").write_text(f"#version: 0.2\n{merges}\n", encoding="utf-8")
    shutil.copy(folders[kind] / "config.json", tmp_path)
    member = spaces[kind][0].languages[0]
    found = read_checkpoint(str(tmp_path)).tokenizer
    for text in WORDS:
        assert found.encode(text).ids == member.tokenizer.encode(text).ids


def of(tokenizer, folder, **settings):
    """A folder of any tokenizer, read as it is."""
    folder.mkdir()
    tokenizer.save(str(folder / "tokenizer.json"))
    settings |= {"tokenizer_class": "PreTrainedTokenizerFast"}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return folder


SPECIALS = {"cls_token": "a", "sep_token": "b", "pad_token": "c", "unk_token": "d", "mask_token": "e"}


def test_tokenizers_that_are_no_use(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate("abcde")}, unk_token="d"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=30)
    tokenizer.enable_truncation(2)
    read = read_checkpoint(str(of(tokenizer, tmp_path / "good", **SPECIALS)))
    assert read.specials == Specials(0, 2, 1, 3, 4)
    assert read.tokenizer.encode("a b c").ids == [0, 1, 2]  # neither padded nor cut
    tokenizer.no_padding()
    tokenizer.no_truncation()
    for missing in SPECIALS:
        left = {name: token for name, token in SPECIALS.items() if name != missing}
        assert refused(read_checkpoint, str(of(tokenizer, tmp_path / missing, **left))) == (missing, "missing")
    crossing = Tokenizer(models.BPE({"a": 0, "b": 1, "c": 2, "d": 3, "e": 4, " ": 5, "a ": 6}, [("a", " ")]))
    assert refused(read_checkpoint, str(of(crossing, tmp_path / "x", **SPECIALS))) == ("x", "unsupported")
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "CanineTokenizer"}', encoding="utf-8")
    (tmp_path / "config.json").write_text('{"model_type": "canine"}', encoding="utf-8")
    assert refused(read_checkpoint, str(tmp_path)) == (tmp_path.name, "unsupported")


def test_a_decoder_needs_no_special_token_but_the_end_of_a_text(tmp_path):
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate("abcde")}, unk_token="d"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    config = {"model_type": "gpt2", "vocab_size": 5}
    for name, tokens, found in (
        ("end", {"eos_token": "b"}, Specials(1, 1, 1, 1, 1)),
        ("start", {"eos_token": "b", "bos_token": "a", "unk_token": "d"}, Specials(0, 1, 1, 3, 1)),
    ):
        folder = of(tokenizer, tmp_path / name, **tokens)
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        assert read_checkpoint(str(folder)).specials == found
    folder = of(tokenizer, tmp_path / "none", bos_token="a", unk_token="d")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert refused(read_checkpoint, str(folder)) == ("none", "missing")


def test_files_that_say_two_things(folders, tmp_path):
    """Transformers 5 makes BERT's way of cutting words anew and takes the vocabulary only."""
    cutter = {"type": "WhitespaceSplit"}
    folder = changed(folders["bert"], tmp_path / "a", "tokenizer.json", pre_tokenizer=cutter)
    assert refused(read_checkpoint, str(folder)) == ("a", "conflict")
    plain = changed(folder, tmp_path / "b", "tokenizer_config.json", tokenizer_class="PreTrainedTokenizerFast")
    assert read_checkpoint(str(plain)).tokenizer.encode("a,b").tokens[1:-1] == ["[UNK]"]  # no cut at the comma
    model = json.loads((folders["xlmr"] / "tokenizer.json").read_text(encoding="utf-8"))["model"]
    folder = changed(folders["xlmr"], tmp_path / "c", "tokenizer.json", model=model | {"unk_id": 7})
    assert refused(read_checkpoint, str(folder)) == ("c", "conflict")


def test_what_cannot_be_read(folders, source, tmp_path):
    assert refused(read_checkpoint, str(tmp_path / "nowhere")) == ("nowhere", "failed")
    (tmp_path / "empty").mkdir()
    assert refused(read_checkpoint, str(tmp_path / "empty")) == ("empty", "failed")
    short = changed(folders["bert"], tmp_path / "short", "config.json", vocab_size=399)
    assert refused(read_checkpoint, str(short)) == ("short", "conflict")
    cut = shutil.copytree(folders["bert"], tmp_path / "cut")
    (cut / "tokenizer.json").write_text('{"model": ', encoding="utf-8")
    assert refused(read_checkpoint, str(cut)) == ("tokenizer.json:1", "format")
    bare = shutil.copytree(folders["roberta"], tmp_path / "bare")
    for path in bare.iterdir():
        if path.name != "config.json":
            path.unlink()
    assert refused(read_checkpoint, str(bare)) == ("bare", "missing")
    tokens = parse_language({"name": "t", "transforms": [{"kind": "invert", "unit": "token"}]})
    assert refused(hf_id_space, str(folders["bert"]), [("t", source, tokens)], Store(tmp_path)) == (
        "start.model",
        "conflict",
    )


def test_code_of_a_checkpoint_is_never_run(folders, tmp_path):
    auto = {"AutoTokenizer": [None, "evil.EvilTokenizer"], "AutoConfig": "evil.EvilConfig"}
    settings = {"tokenizer_class": "EvilTokenizer", "auto_map": auto}
    trace = tmp_path / "ran"
    code = f"open({str(trace)!r}, 'w')\nclass EvilTokenizer: pass\nclass EvilConfig: pass\n"
    for model_type in ("bert", "evil"):
        folder = changed(folders["bert"], tmp_path / model_type, "tokenizer_config.json", **settings)
        (folder / "evil.py").write_text(code, encoding="utf-8")
        config = {"model_type": model_type, "vocab_size": 400, "auto_map": auto}
        (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
        with contextlib.suppress(InputError):  # a known kind is read as what it is
            read_checkpoint(str(folder))
        assert not trace.exists()
    assert refused(read_checkpoint, str(folder)) == ("config.json model_type", "unsupported")

"""New subwords in a checkpoint's tokenizer: old ids stay, new words get fewer pieces, every change is counted."""

from __future__ import annotations

import json
import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from synthlang.corpus import Corpus
from synthlang.language import PARENT, parse_language
from synthlang.sources.mini_english import MiniEnglish
from synthlang.sources.text import TextSource
from synthlang.store import Store
from synthlang.vocabularies import ExtendSpec, hf_id_space
from synthlang.vocabularies.grow import _shift, learn_merges
from synthlang.vocabulary import LONGEST_LEARNED
from tests.refusals import refused
from tests.tokenizer_folders import KINDS, encoded_by, make_folder

GERMAN = [
    "die katze saß auf der matte .",
    "der hund und die katze laufen in das alte haus am tor .",
    "zwei hunde schlafen unter dem großen tisch in der küche .",
    "müde katzen schlafen gern auf dem großen tisch .",
] * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("extended")


@pytest.fixture(scope="module")
def members(folder):
    """The language of the checkpoints, one in another script that is derived from it, and a natural one."""
    mini = MiniEnglish(types=500, sentences=300, dev=30, test=0)
    (folder / "de.txt").write_text("\n".join(GERMAN), encoding="utf-8")
    derived = ("trans", mini, parse_language("trans@hangul"))
    return [("en", mini, PARENT), derived, ("de", TextSource(folder / "de.txt"), PARENT)]


@pytest.fixture(scope="module")
def checkpoints(folder, members):
    lines = [text for batch in members[0][1].batches("train") for text in batch.texts()]
    return {kind: make_folder(kind, lines, 500, folder / kind) for kind in KINDS}


@pytest.fixture(scope="module")
def made(folder, members, checkpoints):
    """{(kind, language): (space before, space, extension)}."""
    store = Store(folder / "store")
    result = {}
    for kind, checkpoint in checkpoints.items():
        before = hf_id_space(str(checkpoint), members, store)[0]
        for language, size in (("trans", 300), ("de", 60)):
            spec = ExtendSpec(language=language, size=size)
            space, _, extension = hf_id_space(str(checkpoint), members, store, spec)
            result[kind, language] = (before, space, extension)
    return result


CASES = [(kind, language) for kind in KINDS for language in ("trans", "de")]
cases = pytest.mark.parametrize("case", CASES, ids="-".join)


@cases
def test_old_ids_stay_and_new_ones_follow(made, case):
    before, space, extension = made[case]
    old = before.languages[0].tokenizer.get_vocab(with_added_tokens=True)
    new = space.languages[0].tokenizer.get_vocab(with_added_tokens=True)
    assert all(new[token] == index for token, index in old.items())
    assert extension.ids.tolist() == list(range(before.size, space.size))
    assert [new[token] for token in extension.tokens] == extension.ids.tolist()
    assert len(set(extension.tokens)) == len(extension.tokens) == space.size - before.size
    assert set(extension.tokens).isdisjoint(old)
    assert 0 < len(extension.ids) <= (300 if case[1] == "trans" else 60)
    assert space.specials == before.specials and space.fingerprint != before.fingerprint
    for member in space.languages:
        assert member.ids.tolist() == [*before.languages[0].ids.tolist(), *extension.ids.tolist()]


def texts_of(member):
    _, source, language = member
    return [language.derive(batch) for batch in source.batches("train")]


@cases
def test_words_get_fewer_pieces_and_every_change_is_counted(made, members, case):
    before, space, extension = made[case]
    unknown = before.specials.unk
    for i, member in enumerate(members):
        counts = Counter(w for batch in texts_of(member) for sentence in batch for w in sentence.words)
        words = list(counts)
        a, b = (
            [s.languages[i].tokenizer.encode(w, add_special_tokens=False).ids for w in words] for s in (before, space)
        )
        changed = [x != y for x, y in zip(a, b, strict=True)]
        times = list(counts.values())
        effect = extension.effects[member[0]]
        assert (effect.types, effect.words) == (len(words), sum(times))
        assert effect.types_changed == sum(changed)
        assert effect.words_changed == sum(n for n, c in zip(times, changed, strict=True) if c)
        assert effect.pieces_before == sum(n * len(x) for n, x in zip(times, a, strict=True))
        assert effect.pieces_after == sum(n * len(x) for n, x in zip(times, b, strict=True))
        assert effect.unknown_before == sum(n for n, x in zip(times, a, strict=True) if unknown in x)
        assert effect.unknown_after == sum(n for n, x in zip(times, b, strict=True) if unknown in x)
    own = extension.effects[case[1]]
    if own.unknown_before > own.words / 2:  # a script that WordPiece or Unigram did not know at all
        assert own.unknown_after < own.words / 100
    else:
        assert own.pieces_after < 0.8 * own.pieces_before
    if case[1] == "trans":  # letters of a script of its own: nothing else can change
        assert extension.effects["en"].types_changed == extension.effects["de"].types_changed == 0


@cases
def test_old_pieces_of_new_tokens_spell_them(made, case):
    before, _, extension = made[case]
    names = {i: token for token, i in before.languages[0].tokenizer.get_vocab().items()}
    known = 0
    for which, token in enumerate(extension.tokens):
        pieces = extension.pieces_of(which).tolist()
        spelled = [names[i] for i in pieces]
        assert before.specials.unk not in pieces
        if pieces and case[0] == "bert":
            assert spelled[0].startswith("##") == token.startswith("##") and all(p[:2] == "##" for p in spelled[1:])
            assert "".join(p.removeprefix("##") for p in spelled) == token.removeprefix("##")
        elif pieces and case[1] == "de":
            assert "".join(spelled) == token or case[0] == "xlmr"  # that may hold a character it did not know
        known += bool(pieces)
    assert known == len(extension.tokens) or case[0] != "roberta"
    assert known > len(extension.tokens) / 3 or case[1] == "trans"
    if case == ("bert", "de"):  # a token that begins a word was cut as that word
        for which, word in enumerate(extension.tokens):
            if word.isalpha():
                cut = before.languages[0].tokenizer.encode(word, add_special_tokens=False).ids
                assert extension.pieces_of(which).tolist() == (cut if cut != [1] else [])


@settings(max_examples=80)
@given(text=st.text(st.sampled_from("aehilnrstuüß ."), max_size=60), language=st.sampled_from(["trans", "de"]))
def test_bpe_only_joins_old_pieces(made, text, language):
    old, new = (made["roberta", language][i].languages[0].tokenizer for i in (0, 1))
    assert parts_of(made["roberta", language][2], new.encode(text).ids) == old.encode(text).ids


def parts_of(extension, ids):
    """The old ids that ids were cut into before."""
    cut = {int(i): extension.pieces_of(k).tolist() for k, i in enumerate(extension.ids)}
    return [part for i in ids for part in cut.get(i, [i])]


def test_saved_extensions_give_transformers_the_same_ids(made, members, folder):
    asked = []
    words = sorted({w for member in members for batch in texts_of(member)[:1] for w in (batch.form.names or ())})
    for kind, language in CASES:
        _, space, _ = made[kind, language]
        target = folder / "saved" / f"{kind}-{language}"
        space.languages[0].save(target)
        model_type = {"bert": "bert", "roberta": "roberta", "xlmr": "xlm-roberta"}[kind]
        (target / "config.json").write_text(json.dumps({"model_type": model_type}), encoding="utf-8")
        asked.append((target, words))
    for case, found in zip(CASES, encoded_by(asked), strict=True):
        space = made[case][1]
        encoded = space.languages[0].encode(Corpus.of_words([words]))
        assert found["apart"] == [i.tolist() for i in np.split(encoded.ids, encoded.word_offsets[1:-1])]
        assert found["text"] == [space.specials.bos, *encoded.ids.tolist(), space.specials.eos]
        assert found["specials"] == list(space.specials.all) and found["size"] == space.size


def test_rows_without_a_token_and_added_tokens_keep_their_ids(checkpoints, members, folder):
    from transformers import AutoTokenizer

    words = ["die", "katze", "<extra>", "zzzz", "the"]
    store = Store(folder / "padded-store")
    spaces, asked = [], []
    for kind, checkpoint in checkpoints.items():
        place = folder / f"padded-{kind}"
        tokenizer = AutoTokenizer.from_pretrained(checkpoint)
        tokenizer.add_tokens(["<extra>", "zzzz"])
        tokenizer.save_pretrained(place)
        config = json.loads((checkpoint / "config.json").read_text(encoding="utf-8"))
        size = config["vocab_size"]
        (place / "config.json").write_text(json.dumps(config | {"vocab_size": size + 12}), encoding="utf-8")
        space, _, extension = hf_id_space(str(place), members, store, ExtendSpec(language="de", size=20))
        assert extension is not None
        new = space.languages[0].tokenizer
        assert (new.token_to_id("<extra>"), new.token_to_id("zzzz")) == (size, size + 1)
        assert extension.ids[0] == size + 12 and space.size == size + 12 + len(extension.ids)
        assert not np.isin(np.arange(size + 2, size + 12), space.languages[0].ids).any()
        space.languages[0].save(place / "saved")
        spaces.append(space)
        asked.append((place / "saved", words))
    for space, found in zip(spaces, encoded_by(asked), strict=True):
        encoded = space.languages[0].encode(Corpus.of_words([words]))
        assert found["apart"] == [i.tolist() for i in np.split(encoded.ids, encoded.word_offsets[1:-1])]
        assert [space.languages[0].tokenizer.token_to_id("<extra>")] in found["apart"]
        assert (encoded.ids >= space.size - 20).any()


def test_an_extension_that_cannot_be(checkpoints, members, tmp_path):
    store = Store(tmp_path / "store")
    bert = str(checkpoints["bert"])
    assert refused(hf_id_space, bert, members, store, ExtendSpec(language="fr")) == ("start.extend.language", "unknown")
    for checkpoint in checkpoints.values():
        assert refused(
            hf_id_space, str(checkpoint), members, store, ExtendSpec(language="en", min_frequency=100_000)
        ) == ("start.extend", "no_effect")
    assert not list((tmp_path / "store").glob("extension*"))
    tokenizer = Tokenizer(models.WordLevel({c: i for i, c in enumerate("abcde")}, unk_token="d"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    (tmp_path / "level").mkdir()
    tokenizer.save(str(tmp_path / "level" / "tokenizer.json"))
    names = dict(zip(("cls_token", "sep_token", "pad_token", "unk_token", "mask_token"), "abcde", strict=True))
    names["tokenizer_class"] = "PreTrainedTokenizerFast"
    (tmp_path / "level" / "tokenizer_config.json").write_text(json.dumps(names), encoding="utf-8")
    assert refused(hf_id_space, str(tmp_path / "level"), members, store, ExtendSpec(language="de")) == (
        "level",
        "unsupported",
    )


symbols = st.sampled_from(["a", "b", "##a", "##bc", "é", "Ġthe"])


@settings(max_examples=80)
@given(
    words=st.dictionaries(st.lists(symbols, min_size=1, max_size=8).map(tuple), st.integers(1, 2500), max_size=8),
    limit=st.integers(1, 12),
    least=st.integers(1, 5),
)
def test_each_merge_joins_a_most_frequent_pair(words, limit, least):
    """Against counting by hand, with words written out as lists."""
    state = {word: [(symbol,) for symbol in word] for word in words}
    learned = learn_merges(words, limit, least)
    assert len(learned) <= limit
    for pair in [*learned, None]:
        counts: Counter[tuple[tuple[str, ...], ...]] = Counter()
        for word, parts in state.items():
            for i in range(len(parts) - 1):
                counts[parts[i], parts[i + 1]] += words[word]
        best = max(counts.values(), default=0)
        if pair is None:
            assert len(learned) == limit or best < least
            break
        assert counts[pair] == best >= least
        for word, parts in state.items():
            state[word] = joined(parts, pair)


def test_a_very_long_word_is_learned_in_pieces():
    """Training shifts all symbols of a word at every merge: a million of them at once would take hours."""
    rest = "".join(random.Random(0).choices("abcd", k=5))
    word = tuple("ab" * (LONGEST_LEARNED // 2) * 50 + rest)
    assert learn_merges({word: 2}, 30, 2) == learn_merges({word[:LONGEST_LEARNED]: 100, tuple(rest): 2}, 30, 2)


def joined(parts, pair):
    result, i = [], 0
    while i < len(parts):
        both = tuple(parts[i : i + 2]) == pair
        result.append(pair[0] + pair[1] if both else parts[i])
        i += 1 + both
    return result


@given(used=st.lists(st.tuples(st.floats(-12, 0), st.integers(1, 9)), min_size=1, max_size=8))
def test_new_scores_are_moved_by_the_median_difference(used):
    total = sum(count for _, count in used)
    each = sorted(score - math.log(count / total) for score, count in used for _ in range(count))
    assert _shift(used, total) == each[(total - 1) // 2]
    assert _shift([], 0) == 0.0


def test_an_extension_is_read_again(checkpoints, members, tmp_path, monkeypatch):
    spec, model = ExtendSpec(language="trans", size=100), str(checkpoints["xlmr"])
    written = []
    for name in ("a", "b"):
        made = hf_id_space(model, members, Store(tmp_path / name), spec)
        files = sorted((tmp_path / name).glob("extension*/[!.]*.json"))
        written.append([(file.parent.name, file.read_bytes()) for file in files])
    assert written[0] == written[1] and len(written[0]) == 2 + len(members)
    with monkeypatch.context() as patched:
        patched.setattr("synthlang.vocabularies.extension._counts", None)
        assert hf_id_space(model, members, Store(tmp_path / "a"), spec)[0].fingerprint == made[0].fingerprint
    tokenizer = next((tmp_path / "a").glob("extension-*/tokenizer.json"))
    before = tokenizer.read_bytes()
    tokenizer.write_text("{}", encoding="utf-8")
    hf_id_space(model, members, Store(tmp_path / "a"), spec)
    assert tokenizer.read_bytes() == before, "what is damaged is made again"

"""Tokenizers: byte-level BPE of the parent, and its exact parallel in a script.

The text of a corpus is words with one space between each two. The parent's tokenizer has
V tokens, ids 0–4 are the special ones. The tokenizer of a transliterated language knows
the same tokens and a copy of each at id + V, so that

    encode(T(text)) = encode(text) + V        for every token of a transliterated word

for any text and any share of transliterated words. It is a plain byte-level BPE: a word in
the script first merges to its 256 letters, each the copy of one byte, and from there on a
copy of every merge of the parent applies. The space before such a word becomes the letter
of the space, so that the copy of ``Ġthe`` exists too. The five special ids have no copy:
``<s> <pad> </s> <unk> <mask>`` are shared; their places V … V + 4 are never emitted.

The tokenizers read these five strings as the special tokens wherever a text spells them, as every tokenizer of
Hugging Face does. What is written for training must not have them: there ``Encoded.as_text`` makes the unknown token of
the four that control a model, and counts the words.

For transforms with ``unit: token`` tokens are the words of a corpus:

    words   the cats .        tokens   Ġthe Ġcat s Ġ.        origin  0 1 1 2

A token is written as the tokenizer writes it, a transliterated one in the letters of the script; either way its id is
known, so what such a language derives is ids first.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers.pre_tokenizers import ByteLevel

from synthlang.corpus import Column, Corpus
from synthlang.errors import InputError
from synthlang.files import read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.rewrite import Rewrite
from synthlang.scripts import SPACE, SPECIAL_TOKENS, Script, byte_characters

FORMAT = 1
BOS, PAD, EOS, UNK, MASK = range(5)
CONTROL = (BOS, PAD, EOS, MASK)
LONGEST_LEARNED = 10_000  # characters of a word: what training takes grows with their square


def train_tokenizer(texts: Iterable[str], size: int, min_frequency: int = 2) -> Tokenizer:
    """A byte-level BPE of at most ``size`` tokens, specials and 256 bytes included."""
    smallest = len(SPECIAL_TOKENS) + 256
    if size < smallest:
        raise InputError(f"vocabulary size {size} is too small: {smallest} tokens are specials and bytes")
    tokenizer = Tokenizer(models.BPE())
    _set_pipeline(tokenizer, None)
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_frequency,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=sorted(ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(map(_in_pieces, texts), trainer)
    return tokenizer


def _in_pieces(text: str) -> str:
    """The text with a word of more than LONGEST_LEARNED characters cut into several, to learn from in bounded time."""
    if len(text) <= LONGEST_LEARNED:
        return text
    return re.sub(r"\S+", lambda word: " ".join(re.findall(f".{{1,{LONGEST_LEARNED}}}", word[0])), text)


def parallel_tokenizer(parent: Tokenizer, script: Script, offset: int) -> Tokenizer:
    """The tokenizer of a language in ``script``: every token also at id + ``offset`` (V, 2V, …).

    Ids between V and ``offset`` belong to other scripts; no text of this one has them.
    """
    model = json.loads(parent.to_str())["model"]
    vocab: dict[str, int] = dict(model["vocab"])
    merges = [(left, right) for left, right in model["merges"]]
    table = byte_characters()
    spelled = ["".join(table[byte] for byte in letter.encode("utf-8")) for letter in script.letters]
    letter_of = dict(zip(table, spelled, strict=True))
    # a copy has a letter of the script for each byte of the token
    copies = {token: "".join(letter_of[char] for char in token) for token in vocab if token not in SPECIAL_TOKENS}
    # a parent written in the script has tokens that spell the same as copies: the copies go first, since a
    # word in the script is always a transliterated one here, and the tokens' ids stay taken
    taken = set(copies.values())
    joint = {f"<shadowed{index}>" if token in taken else token: index for token, index in vocab.items()}
    joint |= {copies[token]: index + offset for token, index in vocab.items() if token in copies}
    own = [pair for pair in merges if taken.isdisjoint((*pair, pair[0] + pair[1]))]
    # letters of three bytes are merged in two steps; the prefixes take the places of the specials' copies
    prefixes = sorted({letter[:2] for letter in spelled if len(letter) == 3})
    spell = [(text[:-1], text[-1]) for text in (*prefixes, *spelled)]
    fillers = [*prefixes, *(f"<unused{i}>" for i in range(len(prefixes), len(SPECIAL_TOKENS)))]
    joint |= {token: offset + i for i, token in enumerate(fillers)}
    # a name with a space, which no token has; a file of a vocabulary must have a name for every id
    joint |= {f"<unused {index}>": index for index in range(len(vocab), offset)}
    parallel = [(copies[left], copies[right]) for left, right in merges_of_text(merges)]
    tokenizer = Tokenizer(models.BPE(vocab=joint, merges=[*spell, *parallel, *own]))
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    _set_pipeline(tokenizer, script)
    assert tokenizer.get_vocab_size() == offset + len(vocab), "a copy is no token of its own"
    return tokenizer


def merges_of_text(merges: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """The merges without those that spell a special token: training learns such, but a tokenizer finds it before."""
    special = set(SPECIAL_TOKENS)
    return [(left, right) for left, right in merges if special.isdisjoint((left, right, left + right))]


def _set_pipeline(tokenizer: Tokenizer, script: Script | None) -> None:
    """Words with one space before each; in a script the space becomes its letter."""
    space = script.space if script else ""
    steps: list[Any] = [normalizers.Strip(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Prepend(" ")]
    to_text: list[Any] = [decoders.ByteLevel()]
    if script:
        steps.append(normalizers.Replace(Regex(f" (?={script.pattern.pattern})"), space))
        to_text.append(decoders.Replace(space, " "))
    tokenizer.normalizer = normalizers.Sequence(steps)
    words = pre_tokenizers.Split(Regex(f"[ {space}][^ {space}]+"), "isolated")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, ByteLevel(add_prefix_space=False, use_regex=False)])
    sep, cls = (SPECIAL_TOKENS[EOS], EOS), (SPECIAL_TOKENS[BOS], BOS)
    tokenizer.post_processor = processors.RobertaProcessing(sep, cls, trim_offsets=False, add_prefix_space=False)
    tokenizer.decoder = decoders.Sequence([*to_text, decoders.Strip(" ", 1, 0)])


class Vocabulary:
    """The parent's tokenizer and those of its derived languages, in one id space.

    ``size`` is V. A language without a script shares the parent's ids; one with a script
    has them at ``offset`` = V.
    """

    def __init__(self, parent: Tokenizer) -> None:
        self.parent = parent
        self._parallel: dict[str, Tokenizer] = {}

    @property
    def size(self) -> int:
        """V: the number of tokens of the parent."""
        return int(self.parent.get_vocab_size())

    def size_with(self, script: Script | None) -> int:
        """The number of ids of a model of the parent and a language in ``script``: V or 2V."""
        return self.size * 2 if script else self.size

    def tokenizer(self, script: Script | None) -> Tokenizer:
        """The tokenizer of the language in ``script`` (None: the parent's)."""
        if script is None:
            return self.parent
        if script.name not in self._parallel:
            self._parallel[script.name] = parallel_tokenizer(self.parent, script, self.size)
        return self._parallel[script.name]

    @cached_property
    def fingerprint(self) -> str:
        """Of the tokens, the merges and the way to ids."""
        return fingerprint("vocabulary", format=FORMAT, tokenizer=json.loads(self.parent.to_str()))

    def save(self, folder: Path, script: Script | None = None) -> None:
        """Write a tokenizer folder that ``AutoTokenizer.from_pretrained`` loads."""
        save_tokenizer(self.tokenizer(script), folder)

    @staticmethod
    def load(folder: Path) -> Vocabulary:
        """Read the parent's tokenizer from a folder that ``save`` wrote; InputError for any other tokenizer."""
        path = folder / "tokenizer.json"
        if not path.exists():
            raise InputError("no such file; is this a tokenizer folder?", path)
        tokenizer = read_tokenizer(path)
        if not _is_ours(tokenizer):
            raise InputError("is no parent's vocabulary that this project trained (a byte-level BPE of words)", path)
        return Vocabulary(tokenizer)


def read_tokenizer(path: Path) -> Tokenizer:
    """A tokenizer from its tokenizer.json; InputError if the file holds none."""
    data = read_json(path)
    try:
        return Tokenizer.from_str(json.dumps(data))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"is no tokenizer: {error}", path) from error


def _is_ours(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer cuts text as those of ``train_tokenizer`` do, with our special ids and every byte."""
    data = json.loads(tokenizer.to_str())
    pipeline = Tokenizer(models.BPE())
    _set_pipeline(pipeline, None)
    expected = json.loads(pipeline.to_str())
    steps = ("normalizer", "pre_tokenizer", "post_processor", "decoder")
    vocab = tokenizer.get_vocab()
    return (
        all(data.get(step) == expected[step] for step in steps)
        and data["model"]["type"] == "BPE"
        and all(vocab.get(token) == index for index, token in enumerate(SPECIAL_TOKENS))
        and set(ByteLevel.alphabet()) <= vocab.keys()
        and sorted(vocab.values()) == list(range(len(vocab)))
    )


def train_vocabulary(batches: Iterable[Corpus], size: int, min_frequency: int = 2) -> Vocabulary:

    def texts() -> Iterator[str]:
        for batch in batches:
            yield from batch.texts()

    return Vocabulary(train_tokenizer(texts(), size, min_frequency))


@dataclass(frozen=True)
class Encoded:
    """Token ids of a batch without <s> and </s>: ``ids`` [tokens], ``word_offsets`` [words + 1].

    ``control_words``: how many words spelled a control token, which is the unknown one now.
    """

    ids: NDArray[np.int64]
    word_offsets: NDArray[np.int64]
    control_words: int = 0

    def as_text(self, control: Collection[int] = CONTROL, unknown: int = UNK) -> Encoded:
        """The same with the unknown token for control ones: a text that spells one means no mask or padding."""
        spelled = np.isin(self.ids, list(control))
        if not spelled.any():
            return self
        words = np.searchsorted(self.word_offsets, np.flatnonzero(spelled), side="right")
        return replace(self, ids=np.where(spelled, unknown, self.ids), control_words=len(np.unique(words)))


def encode_corpus(tokenizer: Tokenizer, corpus: Corpus) -> Encoded:
    """Encode a batch as the tokenizer reads it. Words encode apart from each other, so each type is encoded once."""
    encodings = tokenizer.encode_batch(list(corpus.form.names or ()), add_special_tokens=False)
    lengths = np.fromiter((len(e) for e in encodings), np.int64, len(encodings))
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    ids = np.fromiter((i for e in encodings for i in e.ids), np.int64, int(starts[-1]))
    codes = corpus.form.codes
    word_lengths = lengths[codes]
    word_offsets = np.concatenate([[0], np.cumsum(word_lengths)]).astype(np.int64)
    within = np.arange(word_offsets[-1]) - np.repeat(word_offsets[:-1], word_lengths)
    return Encoded(ids[np.repeat(starts[codes], word_lengths) + within], word_offsets)


def save_tokenizer(tokenizer: Tokenizer, folder: Path, settings: Mapping[str, Any] | None = None) -> None:
    """Write tokenizer.json and tokenizer_config.json; ``settings`` are those of the latter (default: RoBERTa's).

    The class is always the one that reads tokenizer.json as it is: transformers 5 makes any other one anew,
    with other ids, from what it takes the file to mean.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "tokenizer.json", json.loads(tokenizer.to_str()))
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token", "cls_token", "sep_token")
    ours = dict(zip(names, (*SPECIAL_TOKENS, SPECIAL_TOKENS[BOS], SPECIAL_TOKENS[EOS]), strict=True))
    other = {"clean_up_tokenization_spaces": False, "model_input_names": ["input_ids", "attention_mask"]}
    used = {**ours, **other} if settings is None else settings
    write_json(folder / "tokenizer_config.json", {**used, "tokenizer_class": "PreTrainedTokenizerFast"})


def nothing_read(where: str, words: int, tokenizer: str) -> InputError:
    """What is said where no word of a set has a token: a model would be trained and scored on nothing."""
    return InputError(
        f"{where}: none of the {words:,} words has a token in {tokenizer}, so nothing would be read; name a model "
        "whose tokenizer has tokens for this text"
    )


@dataclass(frozen=True)
class Subwords:
    """Words to tokens, tokens to ids and back to words, in the id space of a vocabulary and a script."""

    vocabulary: Vocabulary
    script: Script | None

    def split(self, corpus: Corpus) -> Rewrite:
        """Each word becomes its tokens; InputError for a word the vocabulary has no tokens for."""
        encoded = encode_corpus(self.vocabulary.tokenizer(self.script), corpus)
        pieces = np.diff(encoded.word_offsets)
        if (pieces == 0).any():
            word = corpus.form.values()[int(np.argmax(pieces == 0))]
            raise InputError(f"the word {word!r} has no token")
        used, codes = np.unique(encoded.ids, return_inverse=True)
        form = Column(codes.astype(np.int32), tuple(self._token(i) for i in used.tolist()))
        origin = np.repeat(corpus.position, pieces).astype(np.int32)
        return Rewrite(encoded.word_offsets[corpus.offsets], origin, form)

    def encode(self, corpus: Corpus) -> Encoded:
        table = np.asarray([self._id(name) for name in corpus.form.names or ()], np.int64)
        codes = corpus.form.codes
        return Encoded(table[codes] if len(codes) else codes.astype(np.int64), np.arange(len(codes) + 1))

    def join(self, corpus: Corpus) -> Corpus:
        """Each run of tokens, from one that starts a word to before the next, as that word again."""
        first = starts_word(corpus.form, self.script)
        first[corpus.offsets[:-1][corpus.lengths > 0]] = True
        rows = np.flatnonzero(first)
        ids = self.encode(corpus).ids
        parts = np.split(ids, rows[1:])
        tokenizer = self.vocabulary.tokenizer(self.script)
        texts = tokenizer.decode_batch([p.tolist() for p in parts], skip_special_tokens=False) if len(ids) else []
        offsets = np.concatenate([[0], np.cumsum(first)]).astype(np.int64)[corpus.offsets]
        joined = Rewrite(offsets, corpus.position[rows].astype(np.int32), Column.of(texts))
        return joined.apply(_heads_to_first(corpus, rows, first))

    def token_counts(self, words: Mapping[str, int]) -> Counter[str]:
        """How often each token of the parent occurs in text of these word counts."""
        counts: Counter[str] = Counter()
        encodings = self.vocabulary.parent.encode_batch(list(words), add_special_tokens=False)
        for encoding, count in zip(encodings, words.values(), strict=True):
            for token in encoding.tokens:
                counts[token] += count
        return counts

    def _token(self, index: int) -> str:
        V = self.vocabulary.size
        token = str(self.vocabulary.parent.id_to_token(index % V))
        return token if index < V or self.script is None else self.script.encode_token(token)

    def _id(self, token: str) -> int:
        parent = self.vocabulary.parent
        index = parent.token_to_id(token)
        if index is None and self.script is not None:
            index = parent.token_to_id(self.script.decode_token(token))
            index = None if index is None else index + self.vocabulary.size
        assert index is not None, f"{token!r} is no token"
        return index


def _heads_to_first(corpus: Corpus, rows: NDArray[np.int64], first: NDArray[np.bool_]) -> Corpus:
    """The same, with every head the first token of its word: only those are left when tokens are joined."""
    if "head" not in corpus.columns:
        return corpus
    head = corpus.columns["head"].codes
    starts = corpus.offsets[:-1][corpus.sentence_of_word]
    word_of_token = np.cumsum(first) - 1
    target = rows[word_of_token[np.where(head > 0, starts + head - 1, 0)]] if len(head) else starts
    moved = np.where(head > 0, target - starts + 1, head).astype(np.int32)
    return replace(corpus, columns={**corpus.columns, "head": Column(moved)})


def starts_word(form: Column, script: Script | None) -> NDArray[np.bool_]:
    """[tokens] whether each token is the first of its word; a special token is a word."""
    heads = (SPACE, script.space) if script else (SPACE,)
    names = form.names or ()
    table = np.asarray([n.startswith(heads) or n in SPECIAL_TOKENS for n in names] or [False])
    return np.asarray(table[form.codes], dtype=bool)

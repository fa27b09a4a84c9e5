"""Tokenizers: byte-level BPE of the source language, and its exact copy in a script.

The text of a corpus is words, separated by single spaces. The source's tokenizer has V tokens. The special tokens have
the ids 0–4. The tokenizer of a transliterated language has the same tokens and a copy of each at id + V. For any text
and any share of transliterated words,

    encode(T(text)) = encode(text) + V        for every token of a transliterated word

The tokenizer of the transliterated language is a plain byte-level BPE, too. The first merges of a word in the script
give its letters, each the copy of one byte. Then copies of the source's merges apply. The space before such a word
becomes the letter of the space, so that ``Ġthe`` has a copy, too. The five special tokens
``<s> <pad> </s> <unk> <mask>`` are shared and have no copy, so the ids V … V + 4 are never emitted.

Like every tokenizer of Hugging Face, our tokenizers read these five strings as special tokens wherever a text spells
them. In ids for training, ``Encoded.as_text`` replaces the four that control a model by the unknown token, and counts
the words concerned.

For transforms with ``unit: token``, tokens are the words of a corpus:

    words   the cats .        tokens   Ġthe Ġcat s Ġ.        source_index  0 1 1 2

A token is written as the tokenizer writes it, and a transliterated token in the letters of the script.
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
from synthlang.files import no_such, read_json, write_json
from synthlang.fingerprint import fingerprint
from synthlang.model_files import check_tokenizer_file
from synthlang.rewrite import Rewrite
from synthlang.scripts import SPACE, SPECIAL_TOKENS, Script, byte_characters
from synthlang.wording import plural

FORMAT = 1
BOS, PAD, EOS, UNK, MASK = range(5)
CONTROL = (BOS, PAD, EOS, MASK)
LONGEST_LEARNED = 10_000  # characters of a word; the time of training grows with their square


def train_tokenizer(texts: Iterable[str], size: int, min_frequency: int = 2) -> Tokenizer:
    """Train a byte-level BPE of at most ``size`` tokens, the five special tokens and the 256 bytes included.

    Args:
        texts: Sentences of words, separated by single spaces.
        size: Largest number of tokens.
        min_frequency: Smallest count of a pair of tokens that is merged.

    Raises:
        InputError: The size is smaller than the number of special tokens and bytes.
    """
    smallest = len(SPECIAL_TOKENS) + 256
    if size < smallest:
        reason = f"a vocabulary of {plural(size, 'token')} is too small: {smallest} tokens are special tokens and bytes"
        raise InputError(reason, hint=f"set the size to at least {smallest}", code="range")
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
    """Split words of more than LONGEST_LEARNED characters, so that the time of training is bounded."""
    if len(text) <= LONGEST_LEARNED:
        return text
    return re.sub(r"\S+", lambda word: " ".join(re.findall(f".{{1,{LONGEST_LEARNED}}}", word[0])), text)


def parallel_tokenizer(parent: Tokenizer, script: Script, offset: int) -> Tokenizer:
    """Return the tokenizer of a language in ``script``, with a copy of every token at id + ``offset``.

    ``parent`` is the tokenizer of the source, with V tokens. The offset is V, 2V, …. Ids between V and ``offset``
    belong to other scripts and never occur.
    """
    model = json.loads(parent.to_str())["model"]
    vocab: dict[str, int] = dict(model["vocab"])
    merges = [(left, right) for left, right in model["merges"]]
    table = byte_characters()
    spelled = ["".join(table[byte] for byte in letter.encode("utf-8")) for letter in script.letters]
    letter_of = dict(zip(table, spelled, strict=True))
    # A copy has one letter of the script for each byte of the token.
    copies = {token: "".join(letter_of[char] for char in token) for token in vocab if token not in SPECIAL_TOKENS}
    # A source in the same script has tokens that are spelled like copies. The copies take precedence, since a word in
    # the script always counts as transliterated. The ids of these tokens get names that occur in no text.
    taken = set(copies.values())
    joint = {f"<shadowed{index}>" if token in taken else token: index for token, index in vocab.items()}
    joint |= {copies[token]: index + offset for token, index in vocab.items() if token in copies}
    own = [pair for pair in merges if taken.isdisjoint((*pair, pair[0] + pair[1]))]
    # Letters of three bytes are merged in two steps. The prefixes take the places of the specials' copies.
    prefixes = sorted({letter[:2] for letter in spelled if len(letter) == 3})
    spell = [(text[:-1], text[-1]) for text in (*prefixes, *spelled)]
    fillers = [*prefixes, *(f"<unused{i}>" for i in range(len(prefixes), len(SPECIAL_TOKENS)))]
    joint |= {token: offset + i for i, token in enumerate(fillers)}
    # The file of a vocabulary must have a name for every id. No token has a space in its name.
    joint |= {f"<unused {index}>": index for index in range(len(vocab), offset)}
    parallel = [(copies[left], copies[right]) for left, right in merges_of_text(merges)]
    tokenizer = Tokenizer(models.BPE(vocab=joint, merges=[*spell, *parallel, *own]))
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    _set_pipeline(tokenizer, script)
    assert tokenizer.get_vocab_size() == offset + len(vocab), "a copy is no token of its own"
    return tokenizer


def merges_of_text(merges: Iterable[Sequence[str]]) -> list[tuple[str, str]]:
    """Return the merges that do not spell a special token.

    Training learns such merges, but a tokenizer finds the special token first.
    """
    special = set(SPECIAL_TOKENS)
    return [(left, right) for left, right in merges if special.isdisjoint((left, right, left + right))]


def _set_pipeline(tokenizer: Tokenizer, script: Script | None) -> None:
    """Set the pipeline of a tokenizer: each word has one space before it, which a script writes as a letter."""
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
    """The tokenizers of a source and of its derived languages, in one id space.

    A language without a script shares the source's ids. A language with a script has copies of them at id + V.

    Attributes:
        parent: Tokenizer of the source.
    """

    def __init__(self, parent: Tokenizer) -> None:
        self.parent = parent
        self._parallel: dict[str, Tokenizer] = {}

    @property
    def size(self) -> int:
        """Number V of tokens of the source."""
        return int(self.parent.get_vocab_size())

    def size_with(self, script: Script | None) -> int:
        """Return the number of ids of a model of the source and a language in ``script``: V or 2V."""
        return self.size * 2 if script else self.size

    def tokenizer(self, script: Script | None) -> Tokenizer:
        """Return the tokenizer of a language in ``script``, or the source's tokenizer for None."""
        if script is None:
            return self.parent
        if script.name not in self._parallel:
            self._parallel[script.name] = parallel_tokenizer(self.parent, script, self.size)
        return self._parallel[script.name]

    @cached_property
    def fingerprint(self) -> str:
        """Fingerprint of the tokens, the merges and the mapping to ids."""
        return fingerprint("vocabulary", format=FORMAT, tokenizer=json.loads(self.parent.to_str()))

    def save(self, folder: Path, script: Script | None = None) -> None:
        """Write the tokenizer of a language in ``script`` as a folder that ``AutoTokenizer.from_pretrained`` loads.

        Without a script, the tokenizer of the source is written.

        Raises:
            OSError: The folder cannot be made.
            DiskError: A file cannot be written.
        """
        save_tokenizer(self.tokenizer(script), folder)

    @staticmethod
    def load(folder: Path) -> Vocabulary:
        """Read the source's tokenizer from a folder that ``save`` wrote.

        Raises:
            InputError: The folder has no tokenizer, or its tokenizer is damaged or was not trained here.
        """
        path = folder / "tokenizer.json"
        if not path.exists():
            raise no_such(path, hint="name the folder of a tokenizer")
        tokenizer = read_tokenizer(path)
        if not _is_ours(tokenizer):
            reason = "is not a vocabulary that synthlang trained (a byte-level BPE of words)"
            raise InputError(
                reason, path, hint="name the folder tokenizer/parent of a derived data set", code="unsupported"
            )
        return Vocabulary(tokenizer)


def read_tokenizer(path: Path) -> Tokenizer:
    """Read a tokenizer from a file tokenizer.json, which is checked first.

    Raises:
        InputError: The file is missing, damaged or not a tokenizer.
    """
    check_tokenizer_file(path)
    try:
        return Tokenizer.from_str(json.dumps(read_json(path)))
    except Exception as error:  # the library raises nothing narrower
        hint = "download or save the tokenizer again"
        raise InputError(f"is not a tokenizer: {error}", path, hint=hint, code="format") from error


def _is_ours(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer has the pipeline, the special ids and the bytes of ``train_tokenizer``."""
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
    """Train a vocabulary on the sentences of ``batches``. See ``train_tokenizer`` for the settings.

    Raises:
        InputError: The size is smaller than the number of special tokens and bytes.
    """

    def texts() -> Iterator[str]:
        for batch in batches:
            yield from batch.texts()

    return Vocabulary(train_tokenizer(texts(), size, min_frequency))


@dataclass(frozen=True)
class Encoded:
    """Token ids of a batch without <s> and </s>.

    Attributes:
        ids: Ids of all tokens, [tokens].
        word_offsets: Start of each word in ``ids``, [words + 1].
        control_words: Number of words that spelled a control token and became the unknown token.
    """

    ids: NDArray[np.int64]
    word_offsets: NDArray[np.int64]
    control_words: int = 0

    def as_text(self, control: Collection[int] = CONTROL, unknown: int = UNK) -> Encoded:
        """Replace control tokens, which occur in a text only by chance, by the unknown token, and count their words.

        Args:
            control: Ids of the control tokens.
            unknown: Id of the unknown token.
        """
        spelled = np.isin(self.ids, list(control))
        if not spelled.any():
            return self
        words = np.searchsorted(self.word_offsets, np.flatnonzero(spelled), side="right")
        return replace(self, ids=np.where(spelled, unknown, self.ids), control_words=len(np.unique(words)))


def encode_corpus(tokenizer: Tokenizer, corpus: Corpus) -> Encoded:
    """Encode the words of a batch without <s> and </s>. Each word type is encoded once, apart from its context."""
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
    """Write tokenizer.json and tokenizer_config.json, the latter with ``settings`` (default: RoBERTa's).

    The class is always PreTrainedTokenizerFast, which reads tokenizer.json unchanged. With another class, transformers
    5 may build a tokenizer with other ids.

    Raises:
        OSError: The folder cannot be made.
        DiskError: A file cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "tokenizer.json", json.loads(tokenizer.to_str()))
    names = ("bos_token", "pad_token", "eos_token", "unk_token", "mask_token", "cls_token", "sep_token")
    ours = dict(zip(names, (*SPECIAL_TOKENS, SPECIAL_TOKENS[BOS], SPECIAL_TOKENS[EOS]), strict=True))
    other = {"clean_up_tokenization_spaces": False, "model_input_names": ["input_ids", "attention_mask"]}
    used = {**ours, **other} if settings is None else settings
    write_json(folder / "tokenizer_config.json", {**used, "tokenizer_class": "PreTrainedTokenizerFast"})


def beginning_only(tokenizer: Tokenizer) -> Tokenizer:
    """Return a copy of a tokenizer that puts <s> before a text and nothing after it, as a prompt of a decoder."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    begin = SPECIAL_TOKENS[BOS]
    copy.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A", pair=f"{begin} $A $B:1", special_tokens=[(begin, BOS)]
    )
    return copy


def nothing_read(where: str, words: int, tokenizer: str) -> InputError:
    """Return the error for data in which none of the ``words`` words has a token.

    ``where`` names the data, and ``tokenizer`` is the name of the tokenizer.
    """
    reason = f"has {plural(words, 'word')}, but no word has a token in {tokenizer}"
    return InputError(reason, where, hint="name a model whose tokenizer has tokens for this text", code="empty")


@dataclass(frozen=True)
class Subwords:
    """The mapping between words, tokens and ids of a vocabulary and a script.

    Attributes:
        vocabulary: The vocabulary of the source.
        script: Script of the transliterated words, or None if there are none.
    """

    vocabulary: Vocabulary
    script: Script | None

    def split(self, corpus: Corpus) -> Rewrite:
        """Return the rewrite that replaces each word by its tokens.

        Raises:
            InputError: The vocabulary has no tokens for a word.
        """
        encoded = encode_corpus(self.vocabulary.tokenizer(self.script), corpus)
        pieces = np.diff(encoded.word_offsets)
        if (pieces == 0).any():
            word = corpus.form.values()[int(np.argmax(pieces == 0))]
            reason = f"the word {word!r} is white space, so it has no token"
            raise InputError(reason, hint="delete this word from the text", code="unsupported")
        used, codes = np.unique(encoded.ids, return_inverse=True)
        form = Column(codes.astype(np.int32), tuple(self._token(i) for i in used.tolist()))
        source_index = np.repeat(corpus.position, pieces).astype(np.int32)
        return Rewrite(encoded.word_offsets[corpus.offsets], source_index, form)

    def encode(self, corpus: Corpus) -> Encoded:
        """Return the ids of a corpus whose words are tokens, with one id for each word."""
        table = np.asarray([self._id(name) for name in corpus.form.names or ()], np.int64)
        codes = corpus.form.codes
        return Encoded(table[codes] if len(codes) else codes.astype(np.int64), np.arange(len(codes) + 1))

    def join(self, corpus: Corpus) -> Corpus:
        """Join the tokens of each word, and give the word the labels of its first token."""
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
        """Return the number of occurrences of each token in a source text, given the counts of its words."""
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
    """Move every head to the first token of its word, which is the token that joining keeps."""
    if "head" not in corpus.columns:
        return corpus
    head = corpus.columns["head"].codes
    starts = corpus.offsets[:-1][corpus.sentence_of_word]
    word_of_token = np.cumsum(first) - 1
    target = rows[word_of_token[np.where(head > 0, starts + head - 1, 0)]] if len(head) else starts
    moved = np.where(head > 0, target - starts + 1, head).astype(np.int32)
    return replace(corpus, columns={**corpus.columns, "head": Column(moved)})


def starts_word(form: Column, script: Script | None) -> NDArray[np.bool_]:
    """Return whether each token of ``form`` starts a word, [tokens]. A special token counts as a whole word."""
    heads = (SPACE, script.space) if script else (SPACE,)
    names = form.names or ()
    table = np.asarray([n.startswith(heads) or n in SPECIAL_TOKENS for n in names] or [False])
    return np.asarray(table[form.codes], dtype=bool)

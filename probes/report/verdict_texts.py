"""Captions and notes of a report that explain the verdicts on claims and on printed numbers."""

from __future__ import annotations

CAPTION = (
    "The papers' claims, tested on our results. Ours: the difference or the correlation that decides, with its 95 % "
    "interval (90 % where the claim is that something is no worse, or equal within a margin). A claim replicates when "
    "all of its comparisons hold, and does not replicate when the opposite of one of them is shown. Otherwise it is "
    "inconclusive. Below each verdict its comparisons are counted, and for an inconclusive claim the number of models "
    "that would decide it is estimated (power 80 %, at both ends of an 80 % interval of the effect size). Status: "
    "confirmed, on the number of models that the study planned, or exploratory. p: the largest p of the comparisons "
    "for the claim, and the smallest p against it after Holm's correction. The adjusted values of confirmed claims "
    "are corrected over the paper."
)
RULES = (
    "Models are paired by their seeds; of a single model, fine-tuning seeds are paired. Where that is impossible "
    "Welch's interval is used, and the text says that the sides are not paired.",
    "Claims of more or less are tested two-sided at 5 %, with 95 % intervals. Claims of no less, no more, or equality "
    "within a margin are tested one-sided at 5 % (non-inferiority, or equivalence by two such tests), with 90 % "
    "intervals.",
    "A claim replicates when each of its comparisons holds by itself. Since all of them have to, no correction is "
    "needed, and the p value for the claim is the largest of theirs. A claim does not replicate when the opposite of a "
    "comparison is shown at 5 % after Holm's correction over the claim. Confirmed claims of a paper are decided at a "
    "false discovery rate of 5 % (Benjamini & Yekutieli 2001).",
    "Nothing can be decided when n < 2 or all values are equal, nor for a correlation whose interval contains 0 or "
    "whose p is above .05. None is tested over fewer than five conditions.",
)
READING = (
    "The printed numbers and ours, with 95 % intervals over seeds. The models differ in size, data and training, so "
    "only the signs of numbers and their order within a column can be compared, not their size."
)
ORDERS = (
    "Replicates: our number is above and below the same numbers of its column as in the paper, as far as the order is "
    "decided. If no order is decided, it has the sign of the paper's number.",
    "Does not replicate: the order with another number of the column, or the sign of Δ or of a gain, is opposite in "
    "the paper.",
    "Inconclusive: neither is decided.",
    "An order is decided when it is significant at 5 % after Holm's correction over the column; a sign when our "
    "interval does not contain 0. Printed numbers within half a point of each other (0.005 for measures printed "
    "between −1 and 1) are ties and have no order; numbers that close to 0 have no sign.",
)
MARK = ", one model"
MARKED = (
    "One model: all seeds on one side of the comparison (or all pairs of the correlation) belong to one pretraining. "
    "The interval does not cover other pretraining seeds, and with one of them the verdict may be the opposite."
)
NOT_RUN = "Claims that this study does not test, and why."
ALL = "All comparisons. Rows that begin with a dash are the single conditions of the mean above them."
OVER = "Our conditions and seeds behind each number, and signs that differ from the paper's."

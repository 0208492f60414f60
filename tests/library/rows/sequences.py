"""Recurrent layers, scans and dynamic programming."""

from __future__ import annotations

from ..table import Op


def cells(gates: int) -> tuple[str, ...]:
    """One step: sizes 1, no batch, several batch axes, no biases or one of them."""
    g = gates
    return (
        f"input:2,3 h_0:2,4 weight_ih:{4 * g},3 weight_hh:{4 * g},4 bias_ih:{4 * g} bias_hh:{4 * g}",
        f"input:3,2 h_0:3,2 weight_ih:{2 * g},2 weight_hh:{2 * g},2",
        f"input:1,1 h_0:1,1 weight_ih:{g},1 weight_hh:{g},1 bias_ih:{g} bias_hh:{g}",
        f"input:3 h_0:2 weight_ih:{2 * g},3 weight_hh:{2 * g},2 bias_hh:{2 * g}",
        f"input:0,3 h_0:0,2 weight_ih:{2 * g},3 weight_hh:{2 * g},2 bias_ih:{2 * g}",
    )


def layers(gates: int) -> tuple[str, ...]:
    """A layer: sizes 1, with and without a first state, no biases or one of them."""
    g = gates
    return (
        f"input:4,2,3 weight_ih:{2 * g},3 weight_hh:{2 * g},2 bias_ih:{2 * g} bias_hh:{2 * g} h_0:2,2",
        f"input:3,1,2 weight_ih:{3 * g},2 weight_hh:{3 * g},3",
        f"input:1,2,1 weight_ih:{g},1 weight_hh:{g},1 bias_hh:{g} h_0:2,1",
        f"input:2,1,1 weight_ih:{2 * g},1 weight_hh:{2 * g},2 bias_ih:{2 * g}",
        f"input:2,3,2 weight_ih:{g},2 weight_hh:{g},1 bias_ih:{g} bias_hh:{g}",
    )


def both_ways(gates: int) -> tuple[str, ...]:
    """Two layers, one in each direction."""
    g = gates
    return (
        f"input:3,2,2 weight_ih:{2 * g},2 weight_hh:{2 * g},2 weight_ih_reverse:{2 * g},2 weight_hh_reverse:{2 * g},2 "
        f"bias_ih:{2 * g} bias_hh:{2 * g} bias_ih_reverse:{2 * g} bias_hh_reverse:{2 * g} h_0:2,2,2",
        f"input:4,1,3 weight_ih:{g},3 weight_hh:{g},1 weight_ih_reverse:{g},3 weight_hh_reverse:{g},1",
        f"input:1,2,1 weight_ih:{g},1 weight_hh:{g},1 weight_ih_reverse:{g},1 weight_hh_reverse:{g},1 h_0:2,2,1",
        f"input:2,1,2 weight_ih:{g},2 weight_hh:{g},1 weight_ih_reverse:{g},2 weight_hh_reverse:{g},1 "
        f"bias_ih_reverse:{g}",
        f"input:2,2,1 weight_ih:{2 * g},1 weight_hh:{2 * g},2 weight_ih_reverse:{2 * g},1 weight_hh_reverse:{2 * g},2 "
        f"bias_ih:{2 * g} bias_hh:{2 * g}",
    )


def stacked(gates: int) -> tuple[str, ...]:
    """Layers on top of each other: three, two, and only one."""
    g = gates
    return (
        f"input:3,2,3 weight_ih_0:{2 * g},3 weight_ih:2,{2 * g},2 weight_hh:3,{2 * g},2 "
        f"bias_ih:3,{2 * g} bias_hh:3,{2 * g} h_0:3,2,2",
        f"input:4,1,2 weight_ih_0:{g},2 weight_ih:1,{g},1 weight_hh:2,{g},1",
        f"input:2,2,3 weight_ih_0:{2 * g},3 weight_ih:0,{2 * g},2 weight_hh:1,{2 * g},2 h_0:1,2,2",
        f"input:1,1,1 weight_ih_0:{g},1 weight_ih:1,{g},1 weight_hh:2,{g},1 bias_ih:2,{g}",
        f"input:2,2,2 weight_ih_0:{2 * g},2 weight_ih:1,{2 * g},2 weight_hh:2,{2 * g},2 bias_hh:2,{2 * g} h_0:2,2,2",
    )


def with_cell(cases: tuple[str, ...]) -> tuple[str, ...]:
    """The cases with a first cell where there is a first state, of the same shape."""
    found = []
    for case in cases:
        state = next((word.partition(":")[2] for word in case.split() if word.startswith("h_0:")), "")
        found.append(f"{case} c_0:{state}" if state else case)
    return tuple(found)


def speed(gates: int, steps: int = 64, names: str = "weight_ih weight_hh") -> str:
    rows = 64 * gates
    weights = " ".join(f"{name}:{rows},64n0.1" for name in names.split())
    biases = " ".join(f"{name.replace('weight', 'bias')}:{rows}n0.1" for name in names.split())
    return f"input:{steps},16,64 {weights} {biases}"


def speed_stacked(gates: int) -> str:
    rows = 64 * gates
    return (
        f"input:32,16,64 weight_ih_0:{rows},64n0.1 weight_ih:2,{rows},64n0.1 weight_hh:3,{rows},64n0.1 "
        f"bias_ih:3,{rows}n0.1 bias_hh:3,{rows}n0.1"
    )


def speed_cell(gates: int) -> str:
    rows = 256 * gates
    return f"input:128,256 h_0:128,256 weight_ih:{rows},256n0.1 weight_hh:{rows},256n0.1 bias_ih:{rows} bias_hh:{rows}"


REVERSED = "weight_ih weight_hh weight_ih_reverse weight_hh_reverse"
WEIGHTS = "weight_ih, weight_hh, bias_ih, bias_hh"
LAYER = f"{WEIGHTS}, h_0"
STACK = "weight_ih_0, weight_ih, weight_hh, bias_ih, bias_hh, h_0"
PAIR = (
    "[weight_ih, weight_hh, weight_ih_reverse, weight_hh_reverse], "
    "[bias_ih, bias_hh, bias_ih_reverse, bias_hh_reverse], "
)
CRF = "transitions, start, end"
ONWARD = "transitions=[[0.5,0.2,-1e999],[-1e999,0.1,0.3],[-1e999,-1e999,0.4]] start=[0.0,-1e999,-1e999]"  # never back

RECURRENT = (
    *(
        Op(
            f"rnn_{kind}_cell",
            f"R.cell('rnn_{kind}_cell', input, [h_0], {WEIGHTS})",
            cells(1),
            speed=speed_cell(1),
        )
        for kind in ("tanh", "relu")
    ),
    *(
        Op(f"rnn_{kind}", f"R.single('rnn_{kind}', input, {LAYER})", layers(1), speed=speed(1))
        for kind in ("tanh", "relu")
    ),
    Op(
        "lstm_gates",
        "R.lstm_gates(gates, c_0)",
        ("gates:2,12 c_0:2,3", "gates:2,3,8 c_0:2,3,2", "gates:4 c_0:1", "gates:3,8n5 c_0:3,2", "gates:0,8 c_0:0,2"),
        note="PyTorch has it inside lstm_cell",
    ),
    Op(
        "lstm_cell",
        f"R.cell('lstm_cell', input, [h_0, c_0], {WEIGHTS})",
        with_cell(cells(4)),
        speed=f"{speed_cell(4)} c_0:128,256",
    ),
    Op(
        "lstm",
        f"R.single('lstm', input, {LAYER}, c_0)",
        (*with_cell(layers(4)), "input:3,2,2 weight_ih:8,2 weight_hh:8,2 bias_ih:8 c_0:2,2"),
        speed=speed(4),
    ),
    Op(
        "lstm_reverse",
        f"R.single('lstm', input, {LAYER}, c_0, reverse=True)",
        (*with_cell(layers(4)), "input:3,2,2 weight_ih:8,2 weight_hh:8,2 bias_ih:8 c_0:2,2"),
        note="torch.lstm over the reversed input",
    ),
    Op(
        "lstm_bidirectional",
        f"R.recurrent('lstm', input, {PAIR}[h_0, c_0], True)",
        with_cell(both_ways(4)),
        speed=speed(4, 32, REVERSED),
    ),
    Op("lstm_layers", f"R.stacked('lstm', input, {STACK}, c_0)", with_cell(stacked(4)), speed=speed_stacked(4)),
    Op(
        "gru_gates",
        "R.gru_gates(enter, recur, h_0)",
        (
            "enter:2,9 recur:2,9 h_0:2,3",
            "enter:2,3,6 recur:2,3,6 h_0:2,3,2",
            "enter:3 recur:3 h_0:1",
            "enter:3,6n5 recur:3,6n5 h_0:3,2",
            "enter:0,6 recur:0,6 h_0:0,2",
        ),
        note="PyTorch has it inside gru_cell",
    ),
    Op(
        "gru_cell",
        f"R.cell('gru_cell', input, [h_0], {WEIGHTS})",
        cells(3),
        speed=speed_cell(3),
    ),
    Op("gru", f"R.single('gru', input, {LAYER})", layers(3), speed=speed(3)),
    Op(
        "gru_reverse",
        f"R.single('gru', input, {LAYER}, reverse=True)",
        layers(3),
        note="torch.gru over the reversed input",
    ),
    Op(
        "gru_bidirectional",
        f"R.recurrent('gru', input, {PAIR}[h_0], True)",
        both_ways(3),
        speed=speed(3, 32, REVERSED),
    ),
    Op("gru_layers", f"R.stacked('gru', input, {STACK})", stacked(3), speed=speed_stacked(3)),
)

SCANS = (
    Op(
        "cumsum",
        "torch.cumsum(input, -1)",
        ("input:3,5", "input:2,2,4", "input:6", "input:2,1", "input:0,3", "input:2,0"),
        speed="input:256,1024",
    ),
    Op(
        "cumprod",
        "torch.cumprod(input, -1)",
        (
            "input=[[1.5,-0.5,0.0,2.0,0.0,0.7],[0.0,2.0,-1.0,3.0,0.5,1.0]]",
            "input:3,5",
            "input:2,2,3",
            "input=[2.0,3.0,0.0]",
            "input:2,1",
            "input:0,3",
        ),
        speed="input:256,1024p",
    ),
    Op(
        "logcumsumexp",
        "torch.logcumsumexp(input, -1)",
        (
            "input:3,5",
            "input=[[1.0,-1e999,2.0,3.0],[900.0,-900.0,901.0,899.5]]",
            "input:2,2,4n30",
            "input:2,1",
            "input:5t",
            "input:0,3",
        ),
        speed="input:256,1024",
    ),
    Op(
        "cummax",
        "torch.cummax(input, -1)",
        ("input:3,6t", "input:3,5", "input:2,2,4u", "input:2,1", "input=[1.0,1.0,1.0]", "input:0,3"),
        speed="input:256,1024",
    ),
    Op(
        "cummin",
        "torch.cummin(input, -1)",
        ("input:3,6t", "input:3,5", "input:2,2,4u", "input:2,1", "input=[1.0,1.0,1.0]", "input:0,3"),
        speed="input:256,1024",
    ),
    Op(
        "diff",
        "torch.diff(input, n)",
        ("input:3,5", "input:2,2,3 n=2", "input:5 n=3", "input:2,1", "input:0,3", "input:2,3 n=0", "input:2,3 n=4"),
        speed="input:1024,1024",
    ),
    Op(
        "linear_recurrence",
        "R.linear_recurrence(a, b, h_0)",
        (
            "a:2,4,3 b:2,4,3 h_0:2,3",
            "a:5,2 b:5,2",
            "a:2,2,3,1 b:2,2,3,1 h_0:2,2,1",
            "a:1,1 b:1,1 h_0:1",
            "a=[[0.0,2.0],[-1.0,0.0],[3.0,0.5]] b:3,2",
            "a:0,2,3 b:0,2,3",
        ),
        note="PyTorch has no such scan",
        speed="a:16,256,64p b:16,256,64",
    ),
    Op(
        "selective_scan",
        "R.selective_scan(input, delta, A, B, C, D)",
        (
            "input:2,4,3 delta:2,4,3p A:3,2 B:2,4,2 C:2,4,2 D:3",
            "input:1,5,2 delta:1,5,2p A:2,3 B:1,5,3 C:1,5,3",
            "input:1,1,1 delta:1,1,1p A:1,1 B:1,1,1 C:1,1,1 D:1",
            "input:2,3,1 delta:2,3,1+ A:1,4 B:2,3,4 C:2,3,4",
            "input:0,2,2 delta:0,2,2p A:2,2 B:0,2,2 C:0,2,2 D:2",
        ),
        note="PyTorch has no such scan",
        speed="input:4,256,64 delta:4,256,64p A:64,16 B:4,256,16 C:4,256,16 D:64",
    ),
)

DYNAMIC = (
    Op(
        "crf_forward",
        f"R.crf_forward(emissions, {CRF})",
        (
            "emissions:4,2,3 transitions:3,3 start:3 end:3",
            f"emissions:4,2,3 {ONWARD}",
            "emissions:3,1,2 transitions:2,2",
            "emissions:1,2,3 transitions:3,3 end:3",
            "emissions:3,2,1 transitions:1,1 start:1",
            "emissions:2,1,3n30 transitions:3,3n30",
        ),
        note="PyTorch has no conditional random fields; the sum over all paths, one by one",
        speed="emissions:64,32,16 transitions:16,16 start:16 end:16",
    ),
    Op(
        "crf_score",
        f"R.crf_score(emissions, labels, {CRF})",
        (
            "emissions:4,2,3 labels:4,2i3 transitions:3,3 start:3 end:3",
            "emissions:3,1,2 labels:3,1i2 transitions:2,2",
            "emissions:1,2,3 labels:1,2i3 transitions:3,3 start:3",
            "emissions:3,2,1 labels:3,2i1 transitions:1,1 end:1",
            "emissions:2,0,3 labels:2,0i3 transitions:3,3",
        ),
        note="PyTorch has no conditional random fields",
    ),
    Op(
        "crf_log_likelihood",
        f"R.crf_log_likelihood(emissions, labels, {CRF})",
        (
            "emissions:4,2,3 labels:4,2i3 transitions:3,3 start:3 end:3",
            "emissions:3,1,2 labels:3,1i2 transitions:2,2",
            "emissions:1,2,3 labels:1,2i3 transitions:3,3 start:3",
            "emissions:3,2,1 labels:3,2i1 transitions:1,1 end:1",
            "emissions:2,3,3n10 labels:2,3i3 transitions:3,3n10",
        ),
        note="PyTorch has no conditional random fields",
        speed="emissions:64,32,16 labels:64,32i16 transitions:16,16 start:16 end:16",
    ),
    Op(
        "hmm_forward",
        "R.hmm_forward(observations, start, transitions, emissions)",
        (
            "observations:4,2i5 start:3 transitions:3,3 emissions:3,5",
            "observations=[[0,1],[1,1],[0,2]] start=[-0.1,-1e999] transitions=[[-0.5,-0.9],[-1e999,0.0]] emissions:2,3",
            "observations:1,2i2 start:3 transitions:3,3 emissions:3,2",
            "observations:3,1i1 start:1 transitions:1,1 emissions:1,1",
            "observations:5,1i3 start:2 transitions:2,2 emissions:2,3",
        ),
        note="PyTorch has no hidden Markov models; the sum over all paths, one by one",
        speed="observations:64,32i50 start:16 transitions:16,16 emissions:16,50",
    ),
    Op(
        "viterbi",
        f"R.viterbi(emissions, {CRF})",
        (
            "emissions:4,2,3 transitions:3,3 start:3 end:3",
            f"emissions:4,2,3 {ONWARD}",
            "emissions:3,1,2 transitions:2,2",
            "emissions:1,2,3 transitions:3,3 end:3",
            "emissions:3,2,1 transitions:1,1 start:1",
        ),
        note="PyTorch has no Viterbi; the best of all paths, one by one",
        speed="emissions:64,32,16 transitions:16,16 start:16 end:16",
    ),
    Op(
        "soft_dtw",
        "R.soft_dtw(distances, gamma)",
        (
            "distances:2,3,4",
            "distances:4,3 gamma=0.1",
            "distances:2,2,2,3+ gamma=5.0",
            "distances:1,1",
            "distances:2,1,4",
            "distances:0,2,3",
        ),
        note="PyTorch has no dynamic time warping; the sum over all walks, one by one",
    ),
    Op(
        "needleman_wunsch",
        "R.needleman_wunsch(scores, gap, gamma)",
        (
            "scores:2,3,3",
            "scores:2,4 gap=-0.5 gamma=0.1",
            "scores:2,2,2,2 gamma=5.0",
            "scores:1,1 gap=0.3",
            "scores:2,1,4",
            "scores:0,2,3",
        ),
        note="PyTorch has no alignments; the sum over all walks, one by one",
    ),
)

ROWS = (*RECURRENT, *SCANS, *DYNAMIC)

"""Normalisation."""

from __future__ import annotations

from ..table import Op

IMAGES = "input:32,64,28,28"
SIGNALS = "input:32,64,784"
RUNNING = ("running_mean", "running_var")

ROWS = (
    Op(
        "layer_norm",
        "F.layer_norm(input, input.shape[-1:], weight, bias, eps)",
        (
            "input:3,5 weight:5 bias:5",
            "input:2,3,4",
            "input:4 weight:4",
            "input:2,3 weight:3 bias:3 eps=0.1",
            "input:2,1 weight:1 bias:1 eps=0.1",
            "input:0,3 weight:3 bias:3",
        ),
        speed="input:2048,768 weight:768 bias:768",
    ),
    Op(
        "layer_norm2d",
        "F.layer_norm(input, input.shape[-2:], weight, bias, eps)",
        (
            "input:3,2,4 weight:2,4 bias:2,4",
            "input:2,1,3,2",
            "input:2,3 weight:2,3",
            "input:2,1,3 weight:1,3 bias:1,3 eps=0.1",
            "input:2,1,1 weight:1,1 bias:1,1 eps=0.1",
            "input:0,2,3 weight:2,3 bias:2,3",
        ),
        speed="input:512,16,196 weight:16,196 bias:16,196",
    ),
    Op(
        "rms_norm",
        "F.rms_norm(input, input.shape[-1:], weight, eps)",
        (
            "input:3,5 weight:5",
            "input:2,3,4",
            "input:4 weight:4 eps=0.1",
            "input:2,1 weight:1",
            "input:0,3 weight:3",
        ),
        speed="input:2048,768 weight:768",
    ),
    Op(
        "instance_norm",
        "F.instance_norm(input, None, None, weight, bias, True, 0.0, eps)",
        (
            "input:2,3,4 weight:3 bias:3",
            "input:1,2,5",
            "input:2,1,2 weight:1 eps=0.1",
            "input:1,1,3 weight:1 bias:1",
            "input:3,2,4 weight:2 bias:2 eps=0.01",
        ),
        speed=f"{SIGNALS} weight:64 bias:64",
    ),
    Op(
        "instance_norm2d",
        "F.instance_norm(input, None, None, weight, bias, True, 0.0, eps)",
        (
            "input:2,3,2,4 weight:3 bias:3",
            "input:1,2,3,2",
            "input:2,1,2,1 weight:1 eps=0.1",
            "input:1,1,1,3 weight:1 bias:1",
            "input:3,2,2,2 weight:2 bias:2 eps=0.01",
        ),
        speed=f"{IMAGES} weight:64 bias:64",
    ),
    Op(
        "group_norm",
        "F.group_norm(input, num_groups, weight, bias, eps)",
        (
            "input:2,6,3 num_groups=2 weight:6 bias:6",
            "input:2,6,2 num_groups=3",
            "input:2,4,3 num_groups=4 weight:4 eps=0.1",
            "input:1,3,2 num_groups=1 weight:3 bias:3",
            "input:2,4,1 num_groups=2 weight:4 bias:4 eps=0.01",
            "input:0,4,2 num_groups=2 weight:4 bias:4",
        ),
        speed=f"{SIGNALS} num_groups=8 weight:64 bias:64",
    ),
    Op(
        "group_norm2d",
        "F.group_norm(input, num_groups, weight, bias, eps)",
        (
            "input:2,6,2,3 num_groups=2 weight:6 bias:6",
            "input:2,6,2,1 num_groups=3",
            "input:2,4,1,3 num_groups=4 weight:4 eps=0.1",
            "input:1,3,2,2 num_groups=1 weight:3 bias:3",
            "input:2,4,1,1 num_groups=2 weight:4 bias:4 eps=0.01",
            "input:0,4,2,1 num_groups=2 weight:4 bias:4",
        ),
        speed=f"{IMAGES} num_groups=8 weight:64 bias:64",
    ),
    Op(
        "batch_norm",
        "F.batch_norm(input, running_mean, running_var, weight, bias, False, 0.0, eps)",
        (
            "input:2,3,4 running_mean:3 running_var:3+ weight:3 bias:3",
            "input:3,2,2 running_mean:2 running_var:2+",
            "input:1,3,1 running_mean:3 running_var:3+ weight:3 eps=0.1",
            "input:2,1,3 running_mean:1 running_var:1+ weight:1 bias:1",
            "input:0,2,3 running_mean:2 running_var:2+ weight:2 bias:2",
        ),
        fixed=RUNNING,
        speed=f"{SIGNALS} running_mean:64 running_var:64+ weight:64 bias:64",
    ),
    Op(
        "batch_norm2d",
        "F.batch_norm(input, running_mean, running_var, weight, bias, False, 0.0, eps)",
        (
            "input:2,3,2,3 running_mean:3 running_var:3+ weight:3 bias:3",
            "input:3,2,1,2 running_mean:2 running_var:2+",
            "input:1,3,1,1 running_mean:3 running_var:3+ weight:3 eps=0.1",
            "input:2,1,3,2 running_mean:1 running_var:1+ weight:1 bias:1",
            "input:0,2,3,1 running_mean:2 running_var:2+ weight:2 bias:2",
        ),
        fixed=RUNNING,
        speed=f"{IMAGES} running_mean:64 running_var:64+ weight:64 bias:64",
    ),
    Op(
        "batch_moments",
        "R.batch_moments(input)",
        ("input:2,3,4", "input:3,2,1", "input:1,3,2", "input:1,1,1", "input:4,1,3t"),
        speed=SIGNALS,
    ),
    Op(
        "batch_moments2d",
        "R.batch_moments(input)",
        ("input:2,3,2,2", "input:3,2,1,2", "input:1,3,2,1", "input:1,1,1,1", "input:2,1,3,2t"),
        speed=IMAGES,
    ),
    Op(
        "batch_norm_untracked",
        "F.batch_norm(input, None, None, weight, bias, True, 0.0, eps)",
        (
            "input:2,3,4 weight:3 bias:3",
            "input:3,2,2",
            "input:1,3,2 weight:3 eps=0.1",
            "input:4,2,1 weight:2 bias:2",
            "input:2,1,3 weight:1 bias:1 eps=0.01",
        ),
        speed=f"{SIGNALS} weight:64 bias:64",
    ),
    Op(
        "batch_norm2d_untracked",
        "F.batch_norm(input, None, None, weight, bias, True, 0.0, eps)",
        (
            "input:2,3,2,3 weight:3 bias:3",
            "input:3,2,1,2",
            "input:1,3,2,1 weight:3 eps=0.1",
            "input:4,2,1,1 weight:2 bias:2",
            "input:2,1,3,2 weight:1 bias:1 eps=0.01",
        ),
        speed=f"{IMAGES} weight:64 bias:64",
    ),
    Op(
        "batch_norm_train",
        "R.batch_norm_train(input, running_mean, running_var, weight, bias, momentum, eps)",
        (
            "input:2,3,4 running_mean:3 running_var:3+ weight:3 bias:3",
            "input:3,2,2 running_mean:2 running_var:2+ momentum=0.5",
            "input:1,3,2 running_mean:3 running_var:3+ weight:3 eps=0.1",
            "input:4,2,1 running_mean:2 running_var:2+ weight:2 bias:2 momentum=1.0",
            "input:2,1,3 running_mean:1 running_var:1+ weight:1 bias:1 momentum=0.0",
        ),
        fixed=RUNNING,
        note="F.batch_norm changes the running averages in place",
        speed=f"{SIGNALS} running_mean:64 running_var:64+ weight:64 bias:64",
    ),
    Op(
        "batch_norm2d_train",
        "R.batch_norm_train(input, running_mean, running_var, weight, bias, momentum, eps)",
        (
            "input:2,3,2,3 running_mean:3 running_var:3+ weight:3 bias:3",
            "input:3,2,1,2 running_mean:2 running_var:2+ momentum=0.5",
            "input:1,3,2,1 running_mean:3 running_var:3+ weight:3 eps=0.1",
            "input:4,2,1,1 running_mean:2 running_var:2+ weight:2 bias:2 momentum=1.0",
            "input:2,1,3,2 running_mean:1 running_var:1+ weight:1 bias:1 momentum=0.0",
        ),
        fixed=RUNNING,
        note="F.batch_norm changes the running averages in place",
        speed=f"{IMAGES} running_mean:64 running_var:64+ weight:64 bias:64",
    ),
    Op(
        "normalize",
        "F.normalize(input, p, -1, eps)",
        (
            "input:3,4",
            "input:2,3,5a p=3.0",
            "input:2,4a p=1.0",
            "input=[[0.0,0.0],[3.0,4.0],[0.25,0.0]] eps=0.5",
            "input:4a p=1.5",
            "input:2,1",
            "input:0,3",
            "input:3,4 p=inf",
            "input:3,4a p=0.0",
            "input:2,3a p=-1.5",
        ),
        speed="input:4096,512",
    ),
    Op(
        "local_response_norm",
        "F.local_response_norm(input, window, alpha, beta, k)",
        (
            "input:2,5,2,3 window=3 alpha=0.5",
            "input:1,6,2,1 window=4 alpha=1.0 beta=0.5 k=2.0",
            "input:2,3,1,2 window=5 alpha=2.0",
            "input:1,1,1,1 window=1 alpha=0.25",
            "input:1,4,2,2 window=2",
            "input:0,3,2,2 window=3",
        ),
        speed="input:16,64,27,27 window=5",
    ),
)

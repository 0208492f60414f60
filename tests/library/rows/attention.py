"""Attention and positions."""

from __future__ import annotations

from ..table import Op

SPEED = "Q:4,8,256,64 K:4,8,256,64 V:4,8,256,64"

ROWS = (
    Op(
        "attention",
        "R.attention(Q, K, V)",
        (
            "Q:2,2,3,4 K:2,2,5,4 V:2,2,5,3",
            "Q:1,2,4,3 K:1,2,4,3 V:1,2,4,3",
            "Q:1,1,1,1 K:1,1,1,1 V:1,1,1,1",
            "Q:2,1,3,2 K:2,1,1,2 V:2,1,1,5",
            "Q:1,1,2,2n30 K:1,1,3,2n30 V:1,1,3,2",
            "Q:0,2,3,2 K:0,2,3,2 V:0,2,3,2",
        ),
        speed=SPEED,
    ),
    Op(
        "causal_attention",
        "R.attention(Q, K, V, causal=True)",
        (
            "Q:2,2,4,3 K:2,2,4,3 V:2,2,4,2",
            "Q:1,2,3,2 K:1,2,5,2 V:1,2,5,3",
            "Q:1,1,5,2 K:1,1,3,2 V:1,1,3,1",
            "Q:1,1,1,1 K:1,1,1,1 V:1,1,1,1",
            "Q:1,1,3,2n30 K:1,1,3,2n30 V:1,1,3,2",
            "Q:0,2,3,2 K:0,2,3,2 V:0,2,3,2",
        ),
        speed=SPEED,
    ),
    Op(
        "safe_softmax",
        "torch.ops.aten._safe_softmax(input, -1)",
        (
            "input=[[0.5,-1e999,1.0],[-1e999,-1e999,-1e999]]",
            "input:2,3,4",
            "input:5n300",
            "input:2,1",
            "input:0,3",
        ),
        speed="input:2048,256",
    ),
    Op(
        "masked_attention",
        "R.attention(Q, K, V, mask)",
        (
            "Q:2,2,3,4 K:2,2,5,4 V:2,2,5,3 mask:3,5",
            "Q:1,2,3,2 K:1,2,3,2 V:1,2,3,2 mask=[[0.0,-1e999,-1e999],[0.5,1.0,-1e999],[0.0,-1e999,2.0]]",
            "Q:1,1,1,1 K:1,1,1,1 V:1,1,1,1 mask:1,1",
            "Q:2,1,2,3 K:2,1,2,3 V:2,1,2,2 mask=[[-1e999,-1e999],[0.0,-1e999]]",
            "Q:2,1,1,3 K:2,1,4,3 V:2,1,4,2 mask:1,4n5",
            "Q:0,1,2,2 K:0,1,3,2 V:0,1,3,2 mask:2,3",
        ),
        speed=f"{SPEED} mask:256,256",
    ),
    Op(
        "scaled_dot_product_attention",
        "R.attention(query, key, value, attn_mask, bool(is_causal), False, scale or None)",
        (
            "query:2,2,3,4 key:2,2,5,4 value:2,2,5,3 attn_mask:2,2,3,5",
            "query:1,2,3,2 key:1,2,3,2 value:1,2,3,2 is_causal=1 scale=0.3",
            "query:2,3,4 key:2,5,4 value:2,5,2 scale=1.5",
            "query:3,4 key:2,4 value:2,1",
            "query:2,1,3 key:2,2,3 value:2,2,2 attn_mask=[[[0.5,-1e999]],[[-1e999,-1e999]]]",
            "query:0,1,2,2 key:0,1,3,2 value:0,1,3,2",
        ),
        speed="query:8,8,256,64 key:8,8,256,64 value:8,8,256,64 attn_mask:8,8,256,256",
    ),
    Op(
        "padded_attention",
        "R.padded_attention(Q, K, V, length)",
        (
            "Q:2,2,3,4 K:2,2,5,4 V:2,2,5,3 length=[2,5]",
            "Q:3,1,2,2 K:3,1,4,2 V:3,1,4,2 length=[1,4,3]",
            "Q:1,1,1,1 K:1,1,1,1 V:1,1,1,1 length=[1]",
            "Q:1,2,3,2 K:1,2,3,2 V:1,2,3,1 length=[2]",
            "Q:2,1,2,3 K:2,1,2,3 V:2,1,2,3 length=[0,1]",
        ),
        speed=f"{SPEED} length=[64,256,128,200]",
    ),
    Op(
        "grouped_query_attention",
        "R.attention(Q, K, V, grouped=True)",
        (
            "Q:2,4,3,2 K:2,2,5,2 V:2,2,5,3",
            "Q:1,3,2,2 K:1,1,4,2 V:1,1,4,2",
            "Q:2,2,3,3 K:2,2,3,3 V:2,2,3,3",
            "Q:1,6,1,1 K:1,3,1,1 V:1,3,1,1",
            "Q:0,4,2,2 K:0,2,2,2 V:0,2,2,2",
        ),
        speed="Q:4,8,256,64 K:4,2,256,64 V:4,2,256,64",
    ),
    Op(
        "grouped_query_causal_attention",
        "R.attention(Q, K, V, causal=True, grouped=True)",
        (
            "Q:2,4,3,2 K:2,2,3,2 V:2,2,3,3",
            "Q:1,3,4,2 K:1,1,4,2 V:1,1,4,2",
            "Q:2,2,3,3 K:2,2,3,3 V:2,2,3,3",
            "Q:1,6,1,1 K:1,3,1,1 V:1,3,1,1",
            "Q:1,2,4,2 K:1,1,3,2 V:1,1,3,2",
        ),
        speed="Q:4,8,256,64 K:4,2,256,64 V:4,2,256,64",
    ),
    Op(
        "sliding_window_attention",
        "R.sliding_window_attention(Q, K, V, window)",
        (
            "Q:2,2,5,3 K:2,2,5,3 V:2,2,5,2 window=2",
            "Q:1,2,6,2 K:1,2,6,2 V:1,2,6,3 window=3",
            "Q:1,1,4,2 K:1,1,4,2 V:1,1,4,2 window=1",
            "Q:1,1,3,2 K:1,1,3,2 V:1,1,3,2 window=7",
            "Q:1,1,1,1 K:1,1,1,1 V:1,1,1,1 window=1",
            "Q:0,1,3,2 K:0,1,3,2 V:0,1,3,2 window=2",
        ),
        speed="Q:2,8,1024,64 K:2,8,1024,64 V:2,8,1024,64 window=64",
    ),
    Op(
        "alibi_attention",
        "R.alibi_attention(Q, K, V, slope)",
        (
            "Q:2,2,4,3 K:2,2,4,3 V:2,2,4,2 slope:2+",
            "Q:1,3,5,2 K:1,3,5,2 V:1,3,5,3 slope=[0.25,0.0625,0.015625]",
            "Q:1,1,1,1 K:1,1,1,1 V:1,1,1,1 slope:1",
            "Q:1,2,3,2 K:1,2,5,2 V:1,2,5,2 slope:2",
            "Q:1,1,4,2 K:1,1,3,2 V:1,1,3,2 slope:1",
        ),
        speed=f"{SPEED} slope:8p",
    ),
    Op(
        "multi_head_attention",
        "R.multi_head_attention(query, key, value, in_proj_weight, out_proj_weight, in_proj_bias, out_proj_bias, "
        "num_heads)",
        (
            "query:2,3,4 key:2,2,4 value:2,2,4 in_proj_weight:12,4 out_proj_weight:4,4 in_proj_bias:12 out_proj_bias:4 "
            "num_heads=2",
            "query:1,2,6 key:1,3,6 value:1,3,6 in_proj_weight:18,6 out_proj_weight:6,6 num_heads=3",
            "query:2,2,3 key:2,2,3 value:2,2,3 in_proj_weight:9,3 out_proj_weight:3,3 in_proj_bias:9 out_proj_bias:3",
            "query:1,1,2 key:1,1,2 value:1,1,2 in_proj_weight:6,2 out_proj_weight:2,2 out_proj_bias:2 num_heads=2",
            "query:1,2,1 key:1,2,1 value:1,2,1 in_proj_weight:3,1 out_proj_weight:1,1 in_proj_bias:3",
        ),
        speed="query:8,64,256n0.1 key:8,64,256n0.1 value:8,64,256n0.1 in_proj_weight:768,256n0.1 "
        "out_proj_weight:256,256n0.1 in_proj_bias:768 out_proj_bias:256 num_heads=8",
    ),
    Op(
        "linear_attention",
        "R.linear_attention(Q, K, V, eps)",
        (
            "Q:2,2,4,3 K:2,2,4,3 V:2,2,4,2",
            "Q:1,2,5,2 K:1,2,5,2 V:1,2,5,3 eps=0.1",
            "Q:1,1,1,1 K:1,1,1,1 V:1,1,1,1",
            "Q:1,1,3,2n3 K:1,1,3,2n3 V:1,1,3,2",
            "Q:0,1,3,2 K:0,1,3,2 V:0,1,3,2",
        ),
        note="PyTorch has no linear attention",
        speed="Q:4,8,256,32 K:4,8,256,32 V:4,8,256,32",
    ),
    Op(
        "rope",
        "R.rope(input, base, offset)",
        (
            "input:2,3,4",
            "input:2,1,5,6 base=100.0 offset=3",
            "input:4,2",
            "input:1,2 base=5.0",
            "input:0,3,4 offset=1",
        ),
        note="PyTorch has no rotary embedding",
        speed="input:8,8,256,64",
    ),
    Op(
        "rope_half",
        "R.rope_half(input, base, offset)",
        (
            "input:2,3,4",
            "input:2,1,5,6 base=100.0 offset=3",
            "input:4,2",
            "input:1,2 base=5.0",
            "input:0,3,4 offset=1",
        ),
        note="PyTorch has no rotary embedding",
        speed="input:8,8,256,64",
    ),
    Op(
        "sinusoidal_position_encoding",
        "R.sinusoidal_position_encoding(input, base, offset)",
        ("input:2,3,4", "input:2,2,5 base=100.0 offset=3", "input:4,2", "input:1,1", "input:0,3,4 offset=1"),
        note="PyTorch has no position encoding",
        speed="input:32,256,128",
    ),
)

"""The ops that `make bench` times: some of every family. Their sizes stand in the table of tests/library/rows."""

CHOSEN = (
    "relu_layer", "gelu_layer", "silu_layer", "swiglu", "softmax", "log_softmax", "layer_norm", "rms_norm",
    "group_norm2d", "batch_norm2d_untracked", "linear", "bilinear", "embedding", "embedding_bag_sum", "conv1d",
    "conv2d", "conv3d", "grouped_conv2d", "depthwise_conv2d", "conv_transpose2d", "unfold", "max_pool2d", "avg_pool2d",
    "adaptive_avg_pool2d", "reflection_pad2d", "interpolate_bilinear", "pixel_shuffle", "mse_loss", "huber_loss",
    "cross_entropy", "binary_cross_entropy_with_logits", "triplet_margin_loss", "attention",
    "causal_attention", "lstm", "gru", "cumsum", "gaussian_kernel", "mttkrp", "segment_sum", "graph_attention",
)  # fmt: skip

# SPDX-License-Identifier: MIT
"""Small models with random weights, from Transformers' configurations, and texts for them."""
import torch
import transformers as t

SIZES = dict(vocab_size=97, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=8,
             num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=None)


def of_sizes(config, model, **more):
    return lambda: (model, config(**{**SIZES, **more}))


DECODERS = {
    "llama": of_sizes(t.LlamaConfig, t.LlamaForCausalLM),
    "mistral": of_sizes(t.MistralConfig, t.MistralForCausalLM, sliding_window=7, head_dim=8),
    "gemma2": of_sizes(t.Gemma2Config, t.Gemma2ForCausalLM, head_dim=16, sliding_window=6,
                       attn_logit_softcapping=2.0, query_pre_attn_scalar=16),
    "gpt_oss": of_sizes(t.GptOssConfig, t.GptOssForCausalLM, head_dim=16, sliding_window=8, num_local_experts=2,
                        num_experts_per_tok=1),
    "qwen2": of_sizes(t.Qwen2Config, t.Qwen2ForCausalLM),
    "qwen3": of_sizes(t.Qwen3Config, t.Qwen3ForCausalLM, head_dim=16),
    "phi3": of_sizes(t.Phi3Config, t.Phi3ForCausalLM),
    "gpt2": lambda: (t.GPT2LMHeadModel, t.GPT2Config(
        vocab_size=97, n_embd=64, n_layer=2, n_head=4, n_positions=128, bos_token_id=1, eos_token_id=None,
        pad_token_id=0)),
    "opt": lambda: (t.OPTForCausalLM, t.OPTConfig(
        vocab_size=97, hidden_size=64, ffn_dim=96, num_hidden_layers=2, num_attention_heads=4, word_embed_proj_dim=64,
        max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=None)),
}

ENCODERS = {
    "bert": lambda: (t.BertModel, t.BertConfig(
        vocab_size=97, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=128)),
    "modernbert": lambda: (t.ModernBertModel, t.ModernBertConfig(
        vocab_size=97, hidden_size=64, num_hidden_layers=3, num_attention_heads=4, intermediate_size=96,
        max_position_embeddings=128, local_attention=8, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        cls_token_id=1, sep_token_id=2)),
}


def build(maker, attention):
    """The same weights for each attention; small, but large enough for logits to differ."""
    kind, config = maker()
    torch.manual_seed(3)
    config._attn_implementation = attention
    model = kind(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, 0.15)
            elif name.endswith("sinks"):
                parameter.normal_(0, 1)
    return model


def texts(padded):
    """Two texts of 24 tokens; the first may begin with 5 of padding."""
    tokens = torch.randint(3, 97, (2, 24), generator=torch.Generator().manual_seed(5))
    mask = torch.ones_like(tokens)
    if padded:
        mask[0, :5] = 0
        tokens[0, :5] = 0
    return dict(input_ids=tokens, attention_mask=mask)

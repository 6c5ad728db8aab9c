"""Recurrent layers."""

from __future__ import annotations

from rocmend.probe.case import Case, Context
from rocmend.probe.lazy import torch
from rocmend.probe.registry import Family

family = Family("recurrent", tags=("miopen", "rnn"), allowance="library", slow="miopen-find")


@family.probe("rnn", "a plain recurrent layer", ("float32",))
def rnn(ctx: Context) -> Case:
    return Case(torch.nn.RNN(16, 24, batch_first=True), (ctx.randn(3, 11, 16),))


@family.probe("lstm", "an LSTM layer", ("float32", "float16"))
def lstm(ctx: Context) -> Case:
    return Case(torch.nn.LSTM(16, 24, batch_first=True).to(ctx.dtype), (ctx.randn(3, 11, 16),))


@family.probe("lstm-backward", "gradients of a two-layer LSTM", ("float32",))
def lstm_backward(ctx: Context) -> Case:
    return Case(torch.nn.LSTM(16, 24, num_layers=2, batch_first=True), (ctx.randn(3, 11, 16),), backward=True)


@family.probe("lstm-bidirectional", "an LSTM that reads both ways", ("float32",))
def lstm_bidirectional(ctx: Context) -> Case:
    return Case(torch.nn.LSTM(16, 24, bidirectional=True, batch_first=True), (ctx.randn(3, 11, 16),))


@family.probe("gru", "a GRU layer", ("float32", "float16"))
def gru(ctx: Context) -> Case:
    return Case(torch.nn.GRU(16, 24, batch_first=True).to(ctx.dtype), (ctx.randn(3, 11, 16),))


@family.probe("gru-backward", "gradients of a GRU layer", ("float32",))
def gru_backward(ctx: Context) -> Case:
    return Case(torch.nn.GRU(16, 24, batch_first=True), (ctx.randn(3, 7, 16),), backward=True)

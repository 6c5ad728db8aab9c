"""Groups of processes and what they do together, over ``torch.distributed``: gloo on the CPU, RCCL or NCCL on GPUs."""

from .dataloader import DataLoader
from .sampler import BatchSampler, RandomSampler, SequentialSampler


class Dataset:
    pass


class IterableDataset(Dataset):
    pass

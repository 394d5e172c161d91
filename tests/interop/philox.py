"""The numbers that a run draws its masks with: Philox4x32-10 (Salmon et al., 2011), written from the paper.

A stream of data/random/random_stream.h belongs to a place, (seed, stream, step, row).
"""

WORD = 0xFFFFFFFF
SUBKEYS = 0x80000000


def philox(counter, key):
    counter, key = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * counter[0], 0xCD9E8D57 * counter[2]
        counter = [(b >> 32) ^ counter[1] ^ key[0], b & WORD, (a >> 32) ^ counter[3] ^ key[1], a & WORD]
        key = [(key[0] + 0x9E3779B9) & WORD, (key[1] + 0xBB67AE85) & WORD]
    return counter


class Stream:
    def __init__(self, seed, stream, step, row):
        bits = philox([row, stream, step & WORD, step >> 32 | SUBKEYS], [seed & WORD, seed >> 32])
        self.key, self.draw = bits[:2], 0

    def below(self, limit):
        """Uniform in [0, limit), by Lemire's (2019) multiplication."""
        counter = [self.draw, 0, 0, 0]
        self.draw += 1
        while True:
            bits = philox(counter, self.key)
            product = (bits[1] << 32 | bits[0]) * limit
            if product % 2 ** 64 >= 2 ** 64 % limit:
                return product >> 64
            counter[3] += 0x10000

    def uniform(self):
        return self.below(2 ** 53) / 2 ** 53

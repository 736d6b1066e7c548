// Seeded random numbers: SplitMix64 (Steele, Lea, Flood 2014), one sequence per user.
#ifndef RANDOM_H
#define RANDOM_H

#include <stdint.h>

struct random {
    uint64_t state;
};

static inline uint64_t random_next(struct random *random) {
    uint64_t z = random->state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

// The sequence of one user (a worker of a closed loop, or the arrivals) in one phase.
static inline struct random random_of(uint64_t seed, uint64_t phase, uint64_t user) {
    struct random mixed = {seed};
    mixed.state = random_next(&mixed) ^ phase;
    mixed.state = random_next(&mixed) ^ user;
    return (struct random){random_next(&mixed)};
}

// Uniform in [0, 1).
static inline double random_unit(struct random *random) {
    return (double)(random_next(random) >> 11) * 0x1p-53;
}

// Uniform among 0 to `most`; exact to 2^-64 of the span.
static inline uint64_t random_up_to(struct random *random, uint64_t most) {
    return (uint64_t)(((unsigned __int128)random_next(random) * ((unsigned __int128)most + 1)) >> 64);
}

#endif

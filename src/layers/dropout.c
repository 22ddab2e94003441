/* SPDX-License-Identifier: MIT
 * Dropout's random numbers: Philox 4x32-10. */
#include "fpenv.h"
#include "layers/philox.h"
#include "rapt/layers.h"

void rapt_philox(const uint32_t counter[4], const uint32_t key[2], uint32_t result[4]) {
    uint32_t c[4] = {counter[0], counter[1], counter[2], counter[3]}, k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        const uint64_t a = (uint64_t)0xD2511F53u * c[0], b = (uint64_t)0xCD9E8D57u * c[2];
        const uint32_t next[4] = {(uint32_t)(b >> 32) ^ c[1] ^ k0, (uint32_t)b, (uint32_t)(a >> 32) ^ c[3] ^ k1,
                                  (uint32_t)a};
        for (int i = 0; i < 4; i++)
            c[i] = next[i];
        k0 += 0x9E3779B9u; /* the golden ratio */
        k1 += 0xBB67AE85u; /* sqrt(3) - 1 */
    }
    for (int i = 0; i < 4; i++)
        result[i] = c[i];
}

/* Not inlined: see fpenv.h. Words below it are dropped. */
static __attribute__((noinline)) rapt_status threshold_of(double drop, uint32_t *threshold) {
    if (!(drop >= 0 && drop < 1))
        return RAPT_INVALID_VALUE;
    *threshold = (uint32_t)(drop * 4294967296.0);
    return RAPT_OK;
}

rapt_status rapt_dropout_keep(unsigned char *keep, int64_t count, double drop, uint64_t seed, uint64_t stream,
                              uint64_t first) {
    uint32_t threshold = 0;
    const rapt_fpenv saved = rapt_fpenv_enter();
    const rapt_status status = threshold_of(drop, &threshold);
    rapt_fpenv_leave(saved);
    if (status != RAPT_OK || count < 0)
        return RAPT_INVALID_VALUE;
    if (!keep && count)
        return RAPT_NULL_POINTER;
    const uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)};
    uint32_t word[4] = {0};
    for (int64_t i = 0; i < count; i++) {
        const uint64_t n = first + (uint64_t)i, block = n / 4;
        const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)stream,
                                     (uint32_t)(stream >> 32)};
        if (i == 0 || n % 4 == 0)
            rapt_philox(counter, key, word);
        keep[i] = word[n % 4] >= threshold;
    }
    return RAPT_OK;
}

/* Histogram logs of fio with every check that a reader needs: digits, separators, the number of bins, the order of time,
 * overflow. Sums of bins by 10 s windows and direction, then three percentiles of each: the bins that hold them. Rows lie in the window of
 * their stamp, none is cut at an edge. With AVX2, 32 zero bins are compared at once. It ends at the first fault. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __AVX2__
#include <immintrin.h>
#endif
#define BINS 1856
#define WINDOWS 4096
#define WIDTH_MS 10000
#define BEHIND 200 /* zero bytes behind a text, so that what is compared at once may reach over its end */
static uint64_t sums[2][WINDOWS][BINS];

static void bad(const char *file, long line, const char *why) {
  fprintf(stderr, "%s:%ld: %s\n", file, line, why);
  exit(3);
}

/* Read a number of at most 18 digits. */
static uint64_t number(char **at, const char *file, long line) {
  uint64_t value = 0;
  char *p = *at;
  if (*p < '0' || *p > '9') bad(file, line, "no number");
  for (; *p >= '0' && *p <= '9'; p++) {
    if (p - *at == 18) bad(file, line, "too long");
    value = value * 10 + (uint64_t)(*p - '0');
  }
  *at = p;
  return value;
}

#ifdef __AVX2__
static __m256i loaded(const char *p) { return _mm256_loadu_si256((const __m256i *)p); }

/* Return how many of the next `most` bins are surely zero: each is ended by a separator. */
static int zero_bins(const char *p, int most, const char *pattern) {
  const __m256i zeros[3] = {loaded(pattern), loaded(pattern + 32), loaded(pattern + 64)};
  int bins = 0;
  for (; bins + 32 <= most; bins += 32, p += 96) {
    const __m256i first = _mm256_cmpeq_epi8(loaded(p), zeros[0]);
    const __m256i second = _mm256_cmpeq_epi8(loaded(p + 32), zeros[1]), third = _mm256_cmpeq_epi8(loaded(p + 64), zeros[2]);
    if ((unsigned)_mm256_movemask_epi8(_mm256_and_si256(first, _mm256_and_si256(second, third))) != 0xffffffffu) {
      const unsigned alike = (unsigned)_mm256_movemask_epi8(first);
      int more = alike == 0xffffffffu ? 10 : __builtin_ctz(~alike) / 3;
      while (more > 0 && p[3 * more] != ',' && p[3 * more] != '\n') more--;
      return bins + more;
    }
    if (p[96] != ',' && p[96] != '\n') return bins + 31;
  }
  return bins;
}
#endif

static void read_row(char **at, const char *file, long line, uint64_t before[2], int *last) {
  static char pattern[BEHIND];
  if (!*pattern)
    for (int i = 0; i < BEHIND; i++) pattern[i] = ", 0"[i % 3];
  uint64_t lead[3];
  char *p = *at;
  for (int k = 0; k < 3; k++) {
    lead[k] = number(&p, file, line);
    if (k < 2 && (*p++ != ',' || *p++ != ' ')) bad(file, line, "separator");
  }
  if (lead[1] > 1) bad(file, line, "direction");
  if (lead[0] < 1 || lead[0] < before[lead[1]]) bad(file, line, "time goes back");
  before[lead[1]] = lead[0];
  const uint64_t window = (lead[0] - 1) / WIDTH_MS;
  if (window >= WINDOWS) bad(file, line, "too late");
  if ((int)window > *last) *last = (int)window;
  uint64_t *row = sums[lead[1]][window];
  int bin = 0;
  while (*p == ',') {
#ifdef __AVX2__
    const int zeros = zero_bins(p, BINS - bin, pattern);
    bin += zeros;
    p += 3 * zeros;
    if (*p != ',') break;
#endif
    p++;
    if (*p++ != ' ') bad(file, line, "separator");
    const uint64_t count = number(&p, file, line);
    if (bin == BINS) bad(file, line, "too many bins");
    if (__builtin_add_overflow(row[bin], count, &row[bin])) bad(file, line, "overflow");
    bin++;
  }
  if (*p != '\n') bad(file, line, "no end of line");
  if (bin != BINS) bad(file, line, "bins missing");
  *at = p + 1;
}

int main(int argc, char **argv) {
  int last = 0;
  char *text = NULL;
  size_t room = 0;
  for (int f = 1; f < argc; f++) {
    const int fd = open(argv[f], O_RDONLY);
    struct stat st;
    if (fd < 0 || fstat(fd, &st)) bad(argv[f], 0, "cannot open");
    if ((size_t)st.st_size + BEHIND > room) text = realloc(text, room = (size_t)st.st_size + BEHIND);
    if (text == NULL) bad(argv[f], 0, "memory");
    size_t size = 0;
    for (ssize_t got; (got = read(fd, text + size, (size_t)st.st_size - size)) > 0; size += (size_t)got);
    close(fd);
    memset(text + size, 0, BEHIND);
    uint64_t before[2] = {0};
    long line = 0;
    for (char *p = text; p < text + size;) read_row(&p, argv[f], ++line, before, &last);
  }
  const int percent[3] = {50, 90, 99};
  for (int direction = 0; direction < 2; direction++)
    for (int window = 0; window <= last; window++) {
      uint64_t all = 0;
      for (int bin = 0; bin < BINS; bin++) all += sums[direction][window][bin];
      if (!all) continue;
      printf("%d,%d,%llu", window * WIDTH_MS / 1000, direction, (unsigned long long)all);
      for (int k = 0; k < 3; k++) {
        uint64_t seen = 0;
        int bin = -1;
        while (seen * 100 < all * (uint64_t)percent[k]) seen += sums[direction][window][++bin];
        printf(",%d", bin);
      }
      puts("");
    }
}

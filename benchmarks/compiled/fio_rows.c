/* Histogram logs of fio as fast as a plain loop reads them: nothing is checked, rows are not cut at the edges of windows,
 * stamps past 2^12 seconds wrap. Sums of bins by second, then three percentiles of each: the bins that hold them. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#define BINS 1856
#define SECONDS 4096
static unsigned long long sums[SECONDS][BINS];

int main(int argc, char **argv) {
  int last = 0;
  for (int f = 1; f < argc; f++) {
    int fd = open(argv[f], O_RDONLY);
    struct stat st;
    fstat(fd, &st);
    char *text = malloc(st.st_size + 1), *end = text + st.st_size, *p = text;
    for (long got, n = 0; n < st.st_size && (got = read(fd, text + n, st.st_size - n)) > 0; n += got);
    while (p < end) {
      unsigned long lead[3] = {0};
      for (int k = 0; k < 3; k++, p += 2) while (*p >= '0') lead[k] = lead[k] * 10 + *p++ - '0';
      int second = (lead[0] - 1) / 1000 % SECONDS;
      if (second > last) last = second;
      unsigned long long *row = sums[second];
      for (int bin = 0; bin < BINS; bin++) {
        unsigned count = *p++ - '0';
        while (*p >= '0') count = count * 10 + *p++ - '0';
        if (count) row[bin] += count;
        p += *p == ',' ? 2 : 1;
      }
    }
    free(text);
    close(fd);
  }
  for (int second = 0; second <= last; second++) {
    unsigned long long all = 0, seen = 0;
    for (int bin = 0; bin < BINS; bin++) all += sums[second][bin];
    for (int bin = 0, k = 0; bin < BINS && all; bin++)
      for (seen += sums[second][bin]; k < 3 && seen * 100 >= all * (k == 0 ? 50 : k == 1 ? 90 : 99); k++)
        printf("%d,%d%c", second, bin, k == 2 ? '\n' : ',');
  }
}

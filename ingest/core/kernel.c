/* The loops that NumPy needs many passes for, in C without dependencies: `ingest/core/kernel.py` says where they are used.
 *
 * Each function has a counterpart in NumPy that is the judge: equal numbers, and "no" for exactly the same bytes. Nothing here
 * explains a refusal: what is refused goes to Python, which finds the line and the reason.
 *
 * Buffers come from the caller and are checked for size before anything is read or written. No memory is allocated. Other
 * threads run meanwhile. */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030b0000
#include <Python.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__) && !defined(PORTABLE)
#include <emmintrin.h>
#endif

#define LEADING 3           /* columns of `lead` */
#define CELL 3              /* bytes of a cell that is zero: ", 0" */
#define BLOCK 48            /* bytes that are looked at together: sixteen such cells */
#define LAST (UINT64_C(1) << (BLOCK - 1))
#define EACH (UINT64_MAX / 255) /* a byte of 1 in each byte of a word */
#define PAIRS (UINT64_C(0x000000FF000000FF))
#define PLAIN_DIGITS 18     /* always fit 64 bits */
#define WORD ((Py_ssize_t)sizeof(uint64_t))
#define MOST_TENTH (UINT64_MAX / 10)
#define CONTINUED 128       /* bytes of a word but its last one are this or more */
#define LONGEST_WORD 8
#define FAR (UINT64_C(1) << 40)
#define PIECE 64            /* entries of a row that are looked at together */
#define SHARES 4096         /* parts of a distribution whose places are known before any is looked for */
#define NOT_PLAIN (-1)
#define NO_ROOM (-2)

__extension__ typedef unsigned __int128 Wide;

typedef struct {
  const uint8_t *text;
  Py_ssize_t size, columns, leading, entries, most_rows, most_entries;
  uint64_t *lead, *counts;
  int64_t *indptr, *bins;
} Rows;

static Py_ssize_t least(Py_ssize_t a, Py_ssize_t b) { return a < b ? a : b; }

/* Return the word that lies there, its first byte the lowest. */
static inline uint64_t word_at(const uint8_t *p) {
  uint64_t word;
  memcpy(&word, p, sizeof word);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  word = __builtin_bswap64(word);
#endif
  return word;
}

/* Which bytes of a block are commas, blanks, digits and zeros: bit i of byte i. */
typedef struct {
  uint64_t comma, blank, digit, zero;
} Marks;

#if defined(__SSE2__) && !defined(PORTABLE)
/* Go over blocks that are all as wanted. */
static inline const uint8_t *behind(const uint8_t *p, const uint8_t *end, const uint8_t *wanted) {
  const __m128i *w = (const __m128i *)wanted, a = _mm_loadu_si128(w), b = _mm_loadu_si128(w + 1), c = _mm_loadu_si128(w + 2);
  for (; end - p >= BLOCK; p += BLOCK) {
    const __m128i *t = (const __m128i *)p;
    const __m128i alike = _mm_and_si128(_mm_and_si128(_mm_cmpeq_epi8(_mm_loadu_si128(t), a), _mm_cmpeq_epi8(_mm_loadu_si128(t + 1), b)),
                                        _mm_cmpeq_epi8(_mm_loadu_si128(t + 2), c));
    if (_mm_movemask_epi8(alike) != 0xFFFF) break;
  }
  return p;
}

static inline Marks marks_of(const uint8_t *p) {
  Marks m = {0, 0, 0, 0};
  for (int at = 0; at < BLOCK; at += 16) {
    const __m128i text = _mm_loadu_si128((const __m128i *)(p + at)), value = _mm_sub_epi8(text, _mm_set1_epi8('0'));
    m.comma |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(','))) << at;
    m.blank |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(text, _mm_set1_epi8(' '))) << at;
    m.digit |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_min_epu8(value, _mm_set1_epi8(9)), value)) << at;
    m.zero |= (uint64_t)_mm_movemask_epi8(_mm_cmpeq_epi8(value, _mm_setzero_si128())) << at;
  }
  return m;
}
#else
/* Return in eight bits which bytes of a word are at most `most` where they differ from `byte`, none of 128 or more. */
static inline uint64_t near(uint64_t word, uint64_t byte, uint64_t most) {
  const uint64_t unlike = ((word ^ byte * EACH) & 0x7F * EACH) + (0x7F - most) * EACH;
  return (((~unlike & ~word) >> 7 & EACH) * UINT64_C(0x0102040810204080)) >> 56;
}

static inline const uint8_t *behind(const uint8_t *p, const uint8_t *end, const uint8_t *wanted) {
  while (end - p >= BLOCK && memcmp(p, wanted, BLOCK) == 0) p += BLOCK;
  return p;
}

static inline Marks marks_of(const uint8_t *p) {
  Marks m = {0, 0, 0, 0};
  for (int at = 0; at < BLOCK; at += 8) {
    const uint64_t word = word_at(p + at);
    m.comma |= near(word, ',', 0) << at;
    m.blank |= near(word, ' ', 0) << at;
    m.digit |= near(word, '0', 9) << at;
    m.zero |= near(word, '0', 0) << at;
  }
  return m;
}
#endif

/* Read a number without leading zeros, of at most 64 bits, at `*p`; return whether there is one. A newline is behind it at the
 * latest. */
static inline int number(const uint8_t **p, uint64_t *value) {
  const uint8_t *at = *p;
  uint64_t sum = (uint64_t)*at - '0';
  unsigned digit;
  if (sum > 9) return 0;
  while ((digit = (unsigned)*++at - '0') <= 9) {
    if (sum == 0 || sum > MOST_TENTH || (sum == MOST_TENTH && digit > UINT64_MAX % 10)) return 0;
    sum = 10 * sum + digit;
  }
  *value = sum;
  *p = at;
  return 1;
}

/* Read the number of so many digits, at most eight. */
static inline uint64_t short_number(const uint8_t *p, int digits) {
  uint64_t word = (word_at(p) ^ '0' * EACH) << (64 - 8 * digits);
  word = 10 * word + (word >> 8);
  return ((word & PAIRS) * (100 + (UINT64_C(1000000) << 32)) + (word >> 16 & PAIRS) * (1 + (UINT64_C(10000) << 32))) >> 32;
}

/* Read the bins of a row from its first one on, and go behind its newline; return how many counts there are, all above 0.
 *
 * Of a block is seen at once that each blank stands behind a comma, a digit behind each blank, and none behind a zero that
 * begins a cell. So a cell is as long as its digits and two bytes more, which says in which bin each count stands. */
static inline Py_ssize_t bins_of(const uint8_t **row, const uint8_t *end, Py_ssize_t bins, int64_t *bin, uint64_t *counts) {
  static const char zeros[] = "0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, "; /* a block and a cell */
  const uint8_t *p = *row, *first = p; /* where cells would begin if each were of three bytes */
  uint64_t commas = 0, blanks = 1, zero = 0; /* whether the byte before the block is one, a zero that begins a cell */
  uint8_t last[BLOCK + WORD];
  Py_ssize_t found = 0;
  for (;; p += BLOCK) {
    const uint8_t *wanted = (const uint8_t *)zeros + (blanks ? 0 : commas ? 2 : 1), *block = behind(p, end, wanted);
    if (block > p) zero = *wanted == ',';
    p = block;
    if (end - p < BLOCK + WORD) {
      memset(last, 0, sizeof last);
      block = memcpy(last, p, (size_t)least(end - p, BLOCK));
    }
    const Marks m = marks_of(block);
    const uint64_t other = ~(m.comma | m.blank | m.digit) & ((LAST << 1) - 1);
    const int size = other ? __builtin_ctzll(other) : BLOCK;
    const uint64_t inside = (UINT64_C(1) << size) - 1;
    const uint64_t begins = m.blank << 1 | blanks, behind = m.comma << 1 | commas;
    if ((m.blank ^ behind) & inside || begins & ~m.digit & inside || ((begins & m.zero) << 1 | zero) & m.digit & inside) return NOT_PLAIN;
    for (uint64_t left = begins & ~m.zero & inside; left; left &= left - 1) {
      const int at = __builtin_ctzll(left), digits = __builtin_ctzll(~(m.digit >> at));
      const size_t place = (size_t)(p + at - first) / CELL;
      if (place >= (size_t)bins) return NOT_PLAIN;
      if (digits <= WORD && at + digits < BLOCK) {
        counts[found] = short_number(block + at, digits);
        first += digits - 1;
      } else {
        const uint8_t *from = p + at, *behind_it = from;
        if (!number(&behind_it, &counts[found])) return NOT_PLAIN;
        first += behind_it - from - 1;
      }
      bin[found++] = (int64_t)place;
    }
    if (other) {
      p += size;
      *row = p + 1;
      return *p == '\n' && !((begins | behind) >> size & 1) && p - first == CELL * bins - 2 ? found : NOT_PLAIN;
    }
    commas = m.comma / LAST & 1;
    blanks = m.blank / LAST & 1;
    zero = (begins & m.zero) / LAST & 1;
  }
}

/* Rows as fio writes them: cells without leading zeros, ", " between them, one newline. Returns how many there are. */
static Py_ssize_t rows_of(const Rows *r) {
  const uint8_t *p = r->text, *end = r->text + r->size;
  const Py_ssize_t bins = r->columns - r->leading;
  Py_ssize_t row = 0, entries = r->entries;
  if (r->size == 0 || end[-1] != '\n') return NOT_PLAIN;
  r->indptr[0] = entries;
  while (p < end) {
    if (row == r->most_rows || r->most_entries - entries < bins) return NO_ROOM;
    uint64_t *lead = r->lead + LEADING * row;
    for (int k = 0; k < LEADING; k++) lead[k] = 0;
    for (int k = 0; k < r->leading; k++) {
      if (!number(&p, &lead[k]) || *p++ != ',' || *p++ != ' ') return NOT_PLAIN;
    }
    const Py_ssize_t found = bins_of(&p, end, bins, r->bins + entries, r->counts + entries);
    if (found < 0) return NOT_PLAIN;
    r->indptr[++row] = entries += found;
  }
  return row;
}

/* Rows of `width` integers of up to 18 digits, ", " between them and one newline, to columns with room for `most` each. Returns
 * how many rows there are. */
static Py_ssize_t integers_of(const uint8_t *p, Py_ssize_t size, Py_ssize_t width, int64_t *columns, Py_ssize_t most) {
  const uint8_t *end = p + size;
  Py_ssize_t row = 0;
  if (size == 0 || end[-1] != '\n') return NOT_PLAIN;
  for (; p < end; row++) {
    if (row == most) return NO_ROOM;
    for (Py_ssize_t column = 0; column < width; column++) {
      const uint8_t *first = p;
      uint64_t value = 0;
      for (unsigned digit; (digit = (unsigned)*p - '0') <= 9; p++) value = 10 * value + digit;
      if (p - first > PLAIN_DIGITS || p == first) return NOT_PLAIN;
      columns[column * most + row] = (int64_t)value;
      if (column < width - 1 && (*p++ != ',' || *p++ != ' ')) return NOT_PLAIN;
    }
    if (*p++ != '\n') return NOT_PLAIN;
  }
  return row;
}

/* ZigZag LEB128 words of HdrHistogram payloads, those of row i at text[starts[i]] up to starts[i + 1], to CSR rows: each count with
 * its bin, the sum of all that words before it in its row advance. Returns how many counts there are. */
static Py_ssize_t counts_of(const uint8_t *text, Py_ssize_t size, const int64_t *starts, Py_ssize_t rows, int64_t *indptr,
                            int64_t *bins, int64_t *counts) {
  Py_ssize_t entries = 0;
  indptr[0] = 0;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t end = starts[row + 1];
    uint64_t bin = 0;
    if (starts[row] < entries || end < starts[row] || end > size) return NO_ROOM; /* a word is a byte or more */
    for (int64_t at = starts[row]; at < end;) {
      uint64_t word = text[at++];
      if (word < CONTINUED) { /* a count is written, whatever the word says: that is quicker than to ask */
        const uint64_t gap = word & 1;
        bins[entries] = (int64_t)bin;
        counts[entries] = (int64_t)(word / 2);
        entries += word && !gap;
        bin += 1 + (word / 2 & -gap);
      } else {
        word -= CONTINUED;
        for (unsigned shift = 7, byte = CONTINUED; byte >= CONTINUED; shift += 7) {
          if (at == end || shift == 7 * LONGEST_WORD) return NOT_PLAIN;
          byte = text[at++];
          word |= (uint64_t)(byte % CONTINUED) << shift;
        }
        if (word & 1) {
          bin += word / 2 < FAR ? word / 2 + 1 : FAR;
        } else {
          bins[entries] = (int64_t)bin++;
          counts[entries] = (int64_t)(word / 2);
          entries += word != 0;
        }
      }
    }
    indptr[row + 1] = entries;
  }
  return entries;
}

/* Take objects as columns of words of 64 bits, the last `written` of them to be filled in; -1 and a TypeError where one is no
 * such column. */
static int columns_of(PyObject **objects, int number, int written, Py_buffer *columns) {
  for (int k = 0; k < number; k++) {
    const int flags = PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (k < number - written ? 0 : PyBUF_WRITABLE);
    int found = PyObject_GetBuffer(objects[k], &columns[k], flags);
    if (found == 0 && (columns[k].itemsize != WORD || (uintptr_t)columns[k].buf % WORD)) {
      PyErr_SetString(PyExc_TypeError, "not a column of words of 64 bits");
      PyBuffer_Release(&columns[k]);
      found = -1;
    }
    if (found != 0) {
      while (k-- > 0) PyBuffer_Release(&columns[k]);
      return -1;
    }
  }
  return 0;
}

static Py_ssize_t length(const Py_buffer *column) { return column->len / WORD; }

static void release(Py_buffer *columns, int number) {
  for (int k = 0; k < number; k++) PyBuffer_Release(&columns[k]);
}

/* A column of numbers from 0 on in as few bytes as they need (`Narrow` rows), or in words. */
typedef struct {
  const void *at;
  Py_ssize_t wide, length;
} Held;

static inline int64_t held(const Held *column, int64_t at) {
  switch (column->wide) {
    case 1: return ((const uint8_t *)column->at)[at];
    case 2: return ((const uint16_t *)column->at)[at];
    case 4: return ((const uint32_t *)column->at)[at];
    default: return ((const int64_t *)column->at)[at];
  }
}

/* Take two objects, bins and counts of the same entries, as columns of whole numbers; -1 and a TypeError where one is no such. */
static int entries_of(PyObject **objects, Py_buffer *columns, Held *entries) {
  for (int k = 0; k < 2; k++) {
    int found = PyObject_GetBuffer(objects[k], &columns[k], PyBUF_C_CONTIGUOUS | PyBUF_FORMAT);
    const Py_ssize_t wide = found == 0 ? columns[k].itemsize : 0;
    if (found == 0 && ((wide != 1 && wide != 2 && wide != 4 && wide != WORD) || (uintptr_t)columns[k].buf % (size_t)wide)) {
      PyErr_SetString(PyExc_TypeError, "not a column of whole numbers");
      PyBuffer_Release(&columns[k]);
      found = -1;
    }
    if (found != 0) {
      while (k-- > 0) PyBuffer_Release(&columns[k]);
      return -1;
    }
    entries[k] = (Held){columns[k].buf, wide, columns[k].len / wide};
  }
  return 0;
}

static PyObject *fio_rows(PyObject *self, PyObject *args) {
  enum { LEAD, INDPTR, BINS, COUNTS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer text, c[NUMBER];
  Py_ssize_t columns, leading, entries, found = NO_ROOM;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*nnnOOOO", &text, &columns, &leading, &entries, &o[LEAD], &o[INDPTR], &o[BINS], &o[COUNTS])) return NULL;
  if (columns_of(o, NUMBER, NUMBER, c) != 0) {
    PyBuffer_Release(&text);
    return NULL;
  }
  Rows rows = {text.buf, text.len, columns, leading, entries, 0, 0, c[LEAD].buf, c[COUNTS].buf, c[INDPTR].buf, c[BINS].buf};
  rows.most_rows = least(length(&c[LEAD]) / LEADING, length(&c[INDPTR]) - 1);
  rows.most_entries = least(length(&c[BINS]), length(&c[COUNTS]));
  if (leading >= 0 && leading <= LEADING && columns > leading && entries >= 0 && rows.most_rows >= 0) {
    Py_BEGIN_ALLOW_THREADS
    found = rows_of(&rows);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  release(c, NUMBER);
  if (found != NO_ROOM) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "no room for the rows of so much text, or such columns cannot be");
  return NULL;
}

/* Add the counts of CSR rows to `dense`, rows of `width` cells of which the first is bin `low`: row i to row group[i] there. Row
 * pointers may begin anywhere. Returns -1 where a row or bin is outside, or row pointers do not fit; what came before is added.
 */
static int added(const int64_t *group, Py_ssize_t rows, const int64_t *indptr, const int64_t *bins, const int64_t *counts,
                 Py_ssize_t entries, int64_t low, int64_t width, int64_t *dense, Py_ssize_t cells) {
  if (width < 1) return -1;
  const int64_t groups = cells / width;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const uint64_t first = (uint64_t)indptr[row] - (uint64_t)indptr[0], end = (uint64_t)indptr[row + 1] - (uint64_t)indptr[0];
    if (group[row] < 0 || group[row] >= groups || end < first || end > (uint64_t)entries) return -1;
    uint64_t *to = (uint64_t *)dense + group[row] * width;
    for (uint64_t at = first; at < end; at++) {
      const uint64_t bin = (uint64_t)bins[at] - (uint64_t)low;
      if (bin >= (uint64_t)width) return -1;
      to[bin] += (uint64_t)counts[at];
    }
  }
  return 0;
}

static PyObject *integer_rows(PyObject *self, PyObject *args) {
  PyObject *objects[1];
  Py_buffer text, columns;
  Py_ssize_t width, found = NO_ROOM;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*nO", &text, &width, &objects[0])) return NULL;
  if (columns_of(objects, 1, 1, &columns) != 0) {
    PyBuffer_Release(&text);
    return NULL;
  }
  if (width > 0 && length(&columns) % width == 0) {
    Py_BEGIN_ALLOW_THREADS
    found = integers_of(text.buf, text.len, width, columns.buf, length(&columns) / width);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  release(&columns, 1);
  if (found != NO_ROOM) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "no room for the rows of so much text, or the columns are not of one length");
  return NULL;
}

static PyObject *hdr_rows(PyObject *self, PyObject *args) {
  enum { STARTS, INDPTR, BINS, COUNTS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer text, c[NUMBER];
  Py_ssize_t found = NO_ROOM;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*OOOO", &text, &o[STARTS], &o[INDPTR], &o[BINS], &o[COUNTS])) return NULL;
  if (columns_of(o, NUMBER, NUMBER - 1, c) != 0) {
    PyBuffer_Release(&text);
    return NULL;
  }
  if (length(&c[STARTS]) > 0 && length(&c[INDPTR]) == length(&c[STARTS]) && least(length(&c[BINS]), length(&c[COUNTS])) >= text.len) {
    Py_BEGIN_ALLOW_THREADS
    found = counts_of(text.buf, text.len, c[STARTS].buf, length(&c[STARTS]) - 1, c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf);
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  release(c, NUMBER);
  if (found != NO_ROOM) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "no room for the counts of so many words, or rows lie outside of them");
  return NULL;
}

static PyObject *add_rows(PyObject *self, PyObject *args) {
  enum { GROUP, INDPTR, BINS, COUNTS, DENSE, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  long long width, low;
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOLLO", &o[GROUP], &o[INDPTR], &o[BINS], &o[COUNTS], &low, &width, &o[DENSE])) return NULL;
  if (columns_of(o, NUMBER, 1, c) != 0) return NULL;
  if (length(&c[INDPTR]) == length(&c[GROUP]) + 1 && length(&c[BINS]) == length(&c[COUNTS])) {
    Py_BEGIN_ALLOW_THREADS
    failed = added(c[GROUP].buf, length(&c[GROUP]), c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf, length(&c[BINS]), low, width,
                   c[DENSE].buf, length(&c[DENSE]));
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows or bins are outside of what they are added to");
  return NULL;
}

/* The share top/bottom of a number, rounded, halves to even; top <= bottom. */
static uint64_t rounded(uint64_t value, uint64_t top, uint64_t bottom) {
  uint64_t product, whole, rest;
  if (__builtin_mul_overflow(value, top, &product)) {
    const Wide wide = (Wide)value * top;
    whole = (uint64_t)(wide / bottom); /* at most `value` */
    rest = (uint64_t)(wide % bottom);
  } else {
    whole = product / bottom;
    rest = product % bottom;
  }
  return whole + (rest > bottom - rest || (rest == bottom - rest && (whole & 1)));
}

/* Cut counts by time, in the order of their bins: the first top/bottom of them, whose sums are rounded. */
static void share_of(const int64_t *counts, int64_t many, uint64_t top, uint64_t bottom, int64_t *before) {
  uint64_t divisor = bottom, rest = top, sum = 0, taken = 0;
  while (rest) {
    const uint64_t next = divisor % rest;
    divisor = rest;
    rest = next;
  }
  top /= divisor;
  bottom /= divisor;
  for (int64_t at = 0; at < many; at++) {
    sum += (uint64_t)counts[at];
    const uint64_t until = rounded(sum, top, bottom);
    before[at] = (int64_t)(until - taken);
    taken = until;
  }
}

/* Cut CSR rows: of the counts of each row the share part/whole. Returns -1 where a part is none of its whole, or row pointers do
 * not fit. */
static int shared(const int64_t *counts, Py_ssize_t entries, const int64_t *indptr, const int64_t *part, const int64_t *whole,
                  Py_ssize_t rows, int64_t *before) {
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t end = indptr[row + 1];
    if (indptr[row] < 0 || end < indptr[row] || end > entries || part[row] < 0 || whole[row] < 1 || part[row] > whole[row])
      return -1;
    share_of(counts + indptr[row], end - indptr[row], (uint64_t)part[row], (uint64_t)whole[row], before + indptr[row]);
  }
  return 0;
}

static PyObject *share(PyObject *self, PyObject *args) {
  enum { COUNTS, INDPTR, PART, WHOLE, BEFORE, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOO", &o[COUNTS], &o[INDPTR], &o[PART], &o[WHOLE], &o[BEFORE])) return NULL;
  if (columns_of(o, NUMBER, 1, c) != 0) return NULL;
  if (length(&c[PART]) == length(&c[WHOLE]) && length(&c[INDPTR]) == length(&c[PART]) + 1 &&
      length(&c[BEFORE]) == length(&c[COUNTS])) {
    Py_BEGIN_ALLOW_THREADS
    failed = shared(c[COUNTS].buf, length(&c[COUNTS]), c[INDPTR].buf, c[PART].buf, c[WHOLE].buf, length(&c[PART]), c[BEFORE].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows cannot be cut so");
  return NULL;
}

/* Sums of rows by window and series: `room` windows from `first` on, of each of them a cell with bins from `low` on, zeros before
 * and after. Of what is given out there is room for `most_rows` and `most_entries`. */
typedef struct {
  int64_t step, fine, known, low, width, first, room, *dense, *least, *most;
  int64_t *series, *window, *indptr, *bins, *counts;
  Py_ssize_t rows, entries, most_rows, most_entries;
} Sums;

#define FARTHEST (INT64_MAX / 4) /* ns, either way */

static int64_t below(int64_t value, int64_t step) { return value / step - (value % step < 0); }

/* Give out what the windows hold so far. Returns -1 where there is no room. */
static int given_out(Sums *s) {
  for (int64_t cell = 0; cell < s->room * s->known; cell++) {
    int64_t *dense = s->dense + cell * s->width;
    const Py_ssize_t before = s->entries;
    if (s->most[cell] < 0) continue;
    if (s->rows == s->most_rows) return -1;
    for (int64_t bin = s->least[cell]; bin <= s->most[cell]; bin++) { /* as in `together` */
      if (s->entries == s->most_entries) return -1;
      s->bins[s->entries] = bin + s->low;
      s->counts[s->entries] = dense[bin];
      s->entries += dense[bin] != 0;
      dense[bin] = 0;
    }
    s->least[cell] = s->width;
    s->most[cell] = -1;
    if (s->entries == before) continue;
    s->series[s->rows] = cell % s->known;
    s->window[s->rows] = (cell / s->known + s->first) * s->step;
    s->indptr[++s->rows] = s->entries;
  }
  return 0;
}

/* Add counts of a series to a window; bins rise. Returns -1 where they are outside, or there is no room. */
static int in_window(Sums *s, int64_t series, int64_t window, const int64_t *bins, const int64_t *counts, int64_t many) {
  if (many == 0) return 0;
  if (window < s->first || window - s->first >= s->room) {
    if (given_out(s) != 0) return -1;
    s->first = window;
  }
  const int64_t cell = (window - s->first) * s->known + series;
  uint64_t *dense = (uint64_t *)s->dense + cell * s->width;
  for (int64_t at = 0; at < many; at++) {
    const uint64_t bin = (uint64_t)bins[at] - (uint64_t)s->low;
    if (bin >= (uint64_t)s->width) return -1;
    dense[bin] += (uint64_t)counts[at];
  }
  if (bins[0] - s->low < s->least[cell]) s->least[cell] = bins[0] - s->low;
  if (bins[many - 1] - s->low > s->most[cell]) s->most[cell] = bins[many - 1] - s->low;
  return 0;
}

/* Add up CSR rows by the windows (begin, begin + step] that they lie in: those that lie in several are cut, at each edge of `fine`
 * on their way. `rest` has room for twice the counts of a row. Returns -1 where something is outside, or there is no room. */
static int windows_of(Sums *s, const int64_t *series, const int64_t *start, const int64_t *end, Py_ssize_t rows,
                      const int64_t *indptr, const int64_t *bins, const int64_t *counts, Py_ssize_t entries, int64_t *rest,
                      Py_ssize_t most) {
  s->indptr[0] = 0;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t first = indptr[row], many = indptr[row + 1] - first, last = below(end[row], s->step) - (end[row] % s->step == 0);
    int64_t from = start[row];
    if (first < 0 || many < 0 || indptr[row + 1] > entries || series[row] < 0 || series[row] >= s->known) return -1;
    if (from < -FARTHEST || end[row] > FARTHEST) return -1;
    if (below(from, s->step) >= last) {
      if (in_window(s, series[row], last, bins + first, counts + first, many) != 0) return -1;
      continue;
    }
    if (many > most / 2) return -1;
    int64_t *before = rest + most / 2;
    memcpy(rest, counts + first, (size_t)many * sizeof *rest);
    do {
      const int64_t edge = (below(from, s->fine) + 1) * s->fine;
      share_of(rest, many, (uint64_t)(edge - from), (uint64_t)(end[row] - from), before);
      if (in_window(s, series[row], below(edge - 1, s->step), bins + first, before, many) != 0) return -1;
      for (int64_t at = 0; at < many; at++) rest[at] -= before[at];
      from = edge;
    } while (end[row] > from + s->fine);
    if (in_window(s, series[row], last, bins + first, rest, many) != 0) return -1;
  }
  return given_out(s);
}

static PyObject *window_rows(PyObject *self, PyObject *args) {
  enum { SERIES, START, END_, INDPTR, BINS, COUNTS, REST, DENSE, LEAST_, MOST_, OF, WINDOW, POINTERS, SUMMED, SUMS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  long long step, fine, known, low, width;
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOLLLLLOOOOOOOOO", &o[SERIES], &o[START], &o[END_], &o[INDPTR], &o[BINS], &o[COUNTS], &step, &fine,
                        &known, &low, &width, &o[REST], &o[DENSE], &o[LEAST_], &o[MOST_], &o[OF], &o[WINDOW], &o[POINTERS],
                        &o[SUMMED], &o[SUMS]))
    return NULL;
  if (columns_of(o, NUMBER, NUMBER - REST, c) != 0) return NULL;
  const Py_ssize_t rows = length(&c[SERIES]), cells = length(&c[LEAST_]);
  Sums sums = {step, fine, known, low, width, 0, 0, c[DENSE].buf, c[LEAST_].buf, c[MOST_].buf, c[OF].buf, c[WINDOW].buf,
               c[POINTERS].buf, c[SUMMED].buf, c[SUMS].buf, 0, 0, 0, least(length(&c[SUMMED]), length(&c[SUMS]))};
  sums.most_rows = least(least(length(&c[OF]), length(&c[WINDOW])), length(&c[POINTERS]) - 1);
  if (step > 0 && fine > 0 && step <= FARTHEST && fine <= FARTHEST && known > 0 && width > 0 && cells >= known && length(&c[MOST_]) == cells &&
      length(&c[DENSE]) / width >= cells && length(&c[START]) == rows && length(&c[END_]) == rows &&
      length(&c[INDPTR]) == rows + 1 && length(&c[BINS]) == length(&c[COUNTS]) && sums.most_rows >= 0) {
    sums.room = cells / known;
    Py_BEGIN_ALLOW_THREADS
    failed = windows_of(&sums, c[SERIES].buf, c[START].buf, c[END_].buf, rows, c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf,
                        length(&c[BINS]), c[REST].buf, length(&c[REST]));
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) return PyLong_FromSsize_t(sums.rows);
  PyErr_SetString(PyExc_ValueError, "rows are outside of the windows that they are added to");
  return NULL;
}

/* Stretches of operations in a row, to see that some come again. */

#define STRETCH 32
#define MOST_CHANGES (UINT64_MAX >> (64 - STRETCH + 1)) /* one bit for each operation of a stretch but the first */
#define CHANGES 3 /* of the time in a stretch, at least */
#define MIX UINT64_C(0x9E3779B97F4A7C15)
#define MIX_LATENCY UINT64_C(0xC2B2AE3D27D4EB4F)
#define MIX_AGAIN UINT64_C(0xFF51AFD7ED558CCD)
#define UNMIX UINT64_C(0xF1DE83E19937733D) /* the inverse of MIX */
#define MIX_LAST UINT64_C(0x196A94FE0490E6BD) /* MIX to the power of STRETCH - 1 */

enum { SEEN, SUM, POWER, END, START, ENDS, STARTS, RING, STATE = RING + STRETCH };

/* Take the next operations of a file. Of each stretch that ends with one of them a sum of hashes is kept up, op j times MIX to the
 * power of j. Fills in those that `every`, a power of two, divides, in which both ends and starts change often enough, and where
 * the stretch ends. Returns how many there are, -1 where a label is none. */
static Py_ssize_t stretches_of(uint64_t *state, const int64_t *ends, const int64_t *latencies, const int64_t *series, Py_ssize_t rows,
                               const uint64_t *labels, Py_ssize_t known, uint64_t every, uint64_t *sums, int64_t *places) {
  Py_ssize_t found = 0;
  uint64_t *ring = state + RING, seen = state[SEEN], sum = state[SUM], power = state[POWER];
  uint64_t last_end = state[END], last_start = state[START], new_ends = state[ENDS], new_starts = state[STARTS];
  for (Py_ssize_t row = 0; row < rows; row++) {
    if (series[row] < 0 || series[row] >= known) return -1;
    const uint64_t end = (uint64_t)ends[row], start = end - (uint64_t)latencies[row];
    uint64_t mixed = (end * MIX) ^ ((uint64_t)latencies[row] * MIX_LATENCY) ^ labels[series[row]];
    mixed = (mixed ^ (mixed >> 29)) * MIX_AGAIN;
    uint64_t *oldest = &ring[seen % STRETCH];
    if (seen < STRETCH) {
      power = seen ? power * MIX : 1;
      sum += mixed * power;
    } else {
      sum = (sum - *oldest) * UNMIX + mixed * MIX_LAST;
    }
    *oldest = mixed;
    new_ends = (new_ends << 1 | (end != last_end)) & MOST_CHANGES;
    new_starts = (new_starts << 1 | (start != last_start)) & MOST_CHANGES;
    last_end = end;
    last_start = start;
    if (++seen < STRETCH || sum & (every - 1)) continue;
    if (__builtin_popcountll(new_ends) < CHANGES || __builtin_popcountll(new_starts) < CHANGES) continue;
    sums[found] = sum;
    places[found++] = row;
  }
  const uint64_t now[RING] = {seen, sum, power, last_end, last_start, new_ends, new_starts};
  memcpy(state, now, sizeof now);
  return found;
}

static PyObject *stretches(PyObject *self, PyObject *args) {
  enum { ENDED, LATENCY, SERIES, LABELS, KEPT, SUMS, PLACES, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  unsigned long long every;
  Py_ssize_t found = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOKOOO", &o[ENDED], &o[LATENCY], &o[SERIES], &o[LABELS], &every, &o[KEPT], &o[SUMS], &o[PLACES]))
    return NULL;
  if (columns_of(o, NUMBER, 3, c) != 0) return NULL;
  const Py_ssize_t rows = length(&c[ENDED]);
  if (length(&c[LATENCY]) == rows && length(&c[SERIES]) == rows && length(&c[KEPT]) == STATE && every > 0 &&
      least(length(&c[SUMS]), length(&c[PLACES])) >= rows) {
    Py_BEGIN_ALLOW_THREADS
    found = stretches_of(c[KEPT].buf, c[ENDED].buf, c[LATENCY].buf, c[SERIES].buf, rows, c[LABELS].buf, length(&c[LABELS]), every,
                         c[SUMS].buf, c[PLACES].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (found >= 0) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "operations and labels do not fit");
  return NULL;
}

static inline int64_t bin_of(uint64_t latency, int half, int bits) {
  const int octave = latency < (uint64_t)half ? 0 : 63 - __builtin_clzll(latency) - bits;
  return (int64_t)(latency >> octave) + (int64_t)octave * half;
}

/* Add operations up by window and series, and by bin of `half` bins an octave: a cell for each window of each of `known` series, the
 * windows from `first` on, the bins from `low` on; `dense` is all zeros before and after. Operations in order of time need the bins
 * of one window at a time, which stay in the cache. Returns how many bins were filled in, -1 where an operation lies outside or took
 * no time that can be. */
static Py_ssize_t events_of(const int64_t *series, const int64_t *ends, const int64_t *latencies, Py_ssize_t rows, int64_t step,
                            int64_t first, int64_t known, int half, int64_t low, int64_t width, Py_ssize_t cells, int64_t *dense,
                            int64_t *least, int64_t *most, int64_t *spent, int64_t *indptr, int64_t *bins, int64_t *counts) {
  const int bits = __builtin_ctz((unsigned)half);
  int64_t begin = 0, window = -1; /* of the window of the last one: (begin, begin + step] */
  int64_t cell = 0, held = 0;     /* the first cell that is not yet given out, and that whose bins `dense` begins with */
  Py_ssize_t filled = 0;
  int ordered = 1;
  for (Py_ssize_t row = 1; row < rows; row++) ordered &= ends[row - 1] <= ends[row];
  for (Py_ssize_t row = 0; row <= rows; row++) {
    const int anew = row < rows && step && (window < 0 || ends[row] <= begin || ends[row] - step > begin);
    if (anew) {
      window = (ends[row] - 1) / step - ((ends[row] - 1) % step < 0) - first;
      if (window < 0 || window >= cells / known) return -1;
      begin = (window + first) * step;
    }
    for (const int64_t end = row == rows ? cells : anew && ordered ? window * known : 0; cell < end; cell++) {
      indptr[cell] = filled;
      if (least[cell] == INT64_MAX) continue;
      int64_t *own = dense + (cell - held) * width;
      const int64_t last = bin_of((uint64_t)most[cell], half, bits) - low;
      for (int64_t bin = bin_of((uint64_t)least[cell], half, bits) - low; bin <= last; bin++) { /* as in `together` */
        bins[filled] = bin + low;
        counts[filled] = own[bin];
        filled += own[bin] != 0;
        own[bin] = 0;
      }
    }
    if (row == rows) break;
    if (anew && ordered) held = cell;
    const uint64_t latency = (uint64_t)latencies[row];
    if (latency >> 53 || series[row] < 0 || series[row] >= known) return -1;
    const int64_t bin = bin_of(latency, half, bits) - low, mine = (step ? window : 0) * known + series[row];
    if (bin < 0 || bin >= width || mine >= cells) return -1;
    dense[(mine - held) * width + bin]++;
    if (latencies[row] < least[mine]) least[mine] = latencies[row];
    if (latencies[row] > most[mine]) most[mine] = latencies[row];
    spent[mine] += latencies[row];
  }
  indptr[cells] = filled;
  return filled;
}

static PyObject *event_rows(PyObject *self, PyObject *args) {
  enum { SERIES, ENDED, LATENCY, DENSE, LEAST, MOST, SPENT, INDPTR, BINS, COUNTS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  Py_ssize_t filled = -1;
  long long step, first, known, low, width;
  int half;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOLLLiLLOOOOOOO", &o[SERIES], &o[ENDED], &o[LATENCY], &step, &first, &known, &half, &low, &width,
                        &o[DENSE], &o[LEAST], &o[MOST], &o[SPENT], &o[INDPTR], &o[BINS], &o[COUNTS]))
    return NULL;
  if (columns_of(o, NUMBER, 7, c) != 0) return NULL;
  const Py_ssize_t rows = length(&c[ENDED]), cells = length(&c[LEAST]);
  if (length(&c[SERIES]) == rows && length(&c[LATENCY]) == rows && length(&c[MOST]) == cells && length(&c[SPENT]) == cells &&
      step >= 0 && known > 0 && half > 0 && width > 0 && length(&c[DENSE]) / width >= cells && length(&c[INDPTR]) == cells + 1 &&
      length(&c[BINS]) >= rows && length(&c[COUNTS]) >= rows) {
    Py_BEGIN_ALLOW_THREADS
    filled = events_of(c[SERIES].buf, c[ENDED].buf, c[LATENCY].buf, rows, step, first, known, half, low, width, cells, c[DENSE].buf,
                       c[LEAST].buf, c[MOST].buf, c[SPENT].buf, c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (filled >= 0) return PyLong_FromSsize_t(filled);
  PyErr_SetString(PyExc_ValueError, "operations are outside of what they are added to");
  return NULL;
}

/* What findings are made of: the cheapest levels of a series, and by how much samples took longer than as many others. */

#define LOGS (1 << 18)    /* logarithms of whole numbers that the caller has, from 0 on; that of 0 is 0 */
#define LOG_2 0.69314718055994530942
#define LEAST 1e-300 /* of what was due */

/* Return the logarithm of a number, not 0 and no denormal one: of its first 18 bits from the table, the rest as a series. */
static double logarithm(double x, const double *logs) {
  uint64_t bits;
  memcpy(&bits, &x, sizeof bits);
  const int exponent = (int)(bits >> 52) - 1023 - 17;
  const uint64_t first = (1 << 17) | (bits >> 35 & 0x1FFFF);
  bits = (bits & 0xFFFFFFFFFFFFFULL) | (uint64_t)(1023 + 17) << 52;
  memcpy(&x, &bits, sizeof x);
  const double rest = (x - (double)first) / (double)first; /* below 2^-17 */
  return exponent * LOG_2 + (logs[first] + rest * (1 - rest * (0.5 - rest / 3)));
}

/* Partition `blocks` blocks: of `many` counts a level costs weight x log x, of the first less x times the logarithm of what was
 * due, where that is known. Fills in of each block where the cheapest level that ends with it begins. */
static void cut(const int64_t *below, const double *weights, const double *due, const double *logs, Py_ssize_t many,
                Py_ssize_t blocks, double penalty, double *best, int64_t *back) {
  best[0] = -penalty;
  for (Py_ssize_t end = 1; end <= blocks; end++) {
    double lowest = 0;
    Py_ssize_t from = -1;
    for (Py_ssize_t first = 0; first < end; first++) {
      double cost = 0;
      for (Py_ssize_t at = 0; at < many; at++) {
        const int64_t inside = below[at * (blocks + 1) + end] - below[at * (blocks + 1) + first];
        if (inside <= 0) continue;
        const double size = (double)inside;
        double log = inside < LOGS ? logs[inside] : logarithm(size, logs);
        if (due) log -= logarithm(due[end] - due[first] > LEAST ? due[end] - due[first] : LEAST, logs);
        cost += weights[at] * (size * log);
      }
      cost += best[first];
      if (from >= 0 && cost >= lowest) continue;
      lowest = cost;
      from = first;
    }
    back[end] = from;
    best[end] = lowest + penalty;
  }
}

static PyObject *cut_levels(PyObject *self, PyObject *args) {
  enum { BELOW, WEIGHTS, DUE, TABLE, BEST, BACK, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  double penalty;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOdOO", &o[BELOW], &o[WEIGHTS], &o[DUE], &o[TABLE], &penalty, &o[BEST], &o[BACK])) return NULL;
  if (columns_of(o, NUMBER, 2, c) != 0) return NULL;
  const Py_ssize_t places = length(&c[BEST]), sets = places ? length(&c[BACK]) / places : 0;
  const Py_ssize_t many = sets ? length(&c[WEIGHTS]) / sets : 0, dues = length(&c[DUE]);
  const int whole = sets > 0 && many > 0 && length(&c[BACK]) == sets * places && length(&c[WEIGHTS]) == sets * many &&
                    length(&c[BELOW]) / places == sets * many && length(&c[BELOW]) % places == 0 && length(&c[TABLE]) == LOGS &&
                    (!dues || (dues == sets * places && many == 1));
  if (whole) {
    Py_BEGIN_ALLOW_THREADS
    for (Py_ssize_t set = 0; set < sets; set++)
      cut((const int64_t *)c[BELOW].buf + set * many * places, (const double *)c[WEIGHTS].buf + set * many,
          dues ? (const double *)c[DUE].buf + set * places : NULL, c[TABLE].buf, many, places - 1, penalty, c[BEST].buf,
          (int64_t *)c[BACK].buf + set * places);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (whole) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "counts, weights and places do not fit");
  return NULL;
}

/* Packed bins of many rows in one text, those of row i in coding codes[i]: records of a bin and its count, little endian, of 2 and 1,
 * 2 and 2, 2 and 4 or 4 and 8 bytes. Returns -1 where the rows are not just so much text. */
static int decoded(const uint8_t *p, Py_ssize_t size, const int64_t *codes, const int64_t *indptr, Py_ssize_t rows, int64_t *bins,
                   int64_t *counts, Py_ssize_t entries) {
  static const int wide_bins[] = {0, 2, 2, 2, 4}, wide_counts[] = {0, 1, 2, 4, 8};
  if (indptr[0] != 0 || indptr[rows] != entries) return -1;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t code = codes[row], first = indptr[row], end = indptr[row + 1];
    if (code < 1 || code > 4 || end < first || end > entries) return -1;
    const int bin = wide_bins[code], count = wide_counts[code];
    if (size / (bin + count) < end - first) return -1;
    size -= (bin + count) * (end - first);
    if (code == 1) { /* that of most rows */
      for (int64_t at = first; at < end; at++, p += 3) {
        bins[at] = p[0] | p[1] << 8;
        counts[at] = p[2];
      }
      continue;
    }
    for (int64_t at = first; at < end; at++) {
      uint64_t value = 0;
      for (int k = 0; k < bin; k++) value |= (uint64_t)*p++ << 8 * k;
      bins[at] = (int64_t)value;
      value = 0;
      for (int k = 0; k < count; k++) value |= (uint64_t)*p++ << 8 * k;
      counts[at] = (int64_t)value;
    }
  }
  return size == 0 ? 0 : -1;
}

static PyObject *unpack_rows(PyObject *self, PyObject *args) {
  enum { CODES, INDPTR, BINS, COUNTS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer text, c[NUMBER];
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "y*OOOO", &text, &o[CODES], &o[INDPTR], &o[BINS], &o[COUNTS])) return NULL;
  if (columns_of(o, NUMBER, 2, c) != 0) {
    PyBuffer_Release(&text);
    return NULL;
  }
  if (length(&c[INDPTR]) == length(&c[CODES]) + 1 && length(&c[BINS]) == length(&c[COUNTS])) {
    Py_BEGIN_ALLOW_THREADS
    failed = decoded(text.buf, text.len, c[CODES].buf, c[INDPTR].buf, length(&c[CODES]), c[BINS].buf, c[COUNTS].buf,
                     length(&c[BINS]));
    Py_END_ALLOW_THREADS
  }
  PyBuffer_Release(&text);
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "the text is not just so many records");
  return NULL;
}

/* Whether the bins of each CSR row rise from 0 on and are below `most`; its counts are added up. -1 where row pointers do not fit. */
static int risen(const int64_t *indptr, const int64_t *bins, const int64_t *counts, Py_ssize_t entries, Py_ssize_t rows,
                 int64_t most, int64_t *sums) {
  int rising = 1;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t first = indptr[row], end = indptr[row + 1];
    if (first < 0 || end < first || end > entries) return -1;
    int64_t before = -1;
    uint64_t sum = 0;
    for (int64_t at = first; at < end; at++) {
      rising &= bins[at] > before;
      before = bins[at];
      sum += (uint64_t)counts[at];
    }
    rising &= before < most;
    sums[row] = (int64_t)sum;
  }
  return rising;
}

static PyObject *check_rows(PyObject *self, PyObject *args) {
  enum { INDPTR, BINS, COUNTS, SUMS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  long long most;
  int found = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOLO", &o[INDPTR], &o[BINS], &o[COUNTS], &most, &o[SUMS])) return NULL;
  if (columns_of(o, NUMBER, 1, c) != 0) return NULL;
  if (length(&c[INDPTR]) == length(&c[SUMS]) + 1 && length(&c[BINS]) == length(&c[COUNTS])) {
    Py_BEGIN_ALLOW_THREADS
    found = risen(c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf, length(&c[BINS]), length(&c[SUMS]), most, c[SUMS].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (found >= 0) return PyBool_FromLong(found);
  PyErr_SetString(PyExc_ValueError, "rows do not fit");
  return NULL;
}

/* Add up CSR rows, row order[i] to row group[order[i]], which rises with i: `cells` (zero before and after) holds a sum from bin `low`
 * on. Sums of zero are left out. Returns how many there are, -1 where a row or bin is outside or there is no room. */
static Py_ssize_t together(const int64_t *order, const int64_t *group, Py_ssize_t rows, const int64_t *indptr, const int64_t *bins,
                           const int64_t *counts, Py_ssize_t entries, int64_t low, uint64_t *cells, Py_ssize_t width,
                           int64_t *pointers, Py_ssize_t groups, int64_t *summed, int64_t *sums, Py_ssize_t room) {
  Py_ssize_t found = 0, at = 0;
  pointers[0] = 0;
  for (Py_ssize_t to = 0; to < groups; to++) {
    Py_ssize_t least = width, most = -1;
    for (; at < rows; at++) {
      const int64_t row = order[at];
      if (row < 0 || row >= rows) return -1;
      if (group[row] != to) break;
      const int64_t first = indptr[row], end = indptr[row + 1];
      if (first < 0 || end < first || end > entries) return -1;
      for (int64_t place = first; place < end; place++) {
        const int64_t bin = bins[place] - low;
        if (bin < 0 || bin >= width) return -1;
        cells[bin] += (uint64_t)counts[place];
        if (bin < least) least = bin;
        if (bin > most) most = bin;
      }
    }
    for (Py_ssize_t bin = least; bin <= most; bin++) { /* without asking: what a zero has written, the next one writes over */
      if (found == room) return -1;
      summed[found] = bin + low;
      sums[found] = (int64_t)cells[bin];
      found += cells[bin] != 0;
      cells[bin] = 0;
    }
    pointers[to + 1] = found;
  }
  return at == rows ? found : -1;
}

static PyObject *sum_rows(PyObject *self, PyObject *args) {
  enum { ORDER, GROUP, INDPTR, BINS, COUNTS, CELLS, POINTERS, SUMMED, SUMS, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  long long low;
  Py_ssize_t found = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOLOOOO", &o[ORDER], &o[GROUP], &o[INDPTR], &o[BINS], &o[COUNTS], &low, &o[CELLS], &o[POINTERS],
                        &o[SUMMED], &o[SUMS]))
    return NULL;
  if (columns_of(o, NUMBER, 4, c) != 0) return NULL;
  if (length(&c[ORDER]) == length(&c[GROUP]) && length(&c[INDPTR]) == length(&c[GROUP]) + 1 &&
      length(&c[BINS]) == length(&c[COUNTS]) && length(&c[POINTERS]) > 0) {
    Py_BEGIN_ALLOW_THREADS
    found = together(c[ORDER].buf, c[GROUP].buf, length(&c[GROUP]), c[INDPTR].buf, c[BINS].buf, c[COUNTS].buf, length(&c[BINS]), low,
                     c[CELLS].buf, length(&c[CELLS]), c[POINTERS].buf, length(&c[POINTERS]) - 1, c[SUMMED].buf, c[SUMS].buf,
                     least(length(&c[SUMMED]), length(&c[SUMS])));
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (found >= 0) return PyLong_FromSsize_t(found);
  PyErr_SetString(PyExc_ValueError, "rows, bins or sums are outside of what they are added to");
  return NULL;
}

/* Copy the entries of rows to where each row begins in another column, whose entries have as many bytes. -1 where one does not fit. */
static int laid(const int64_t *indptr, const int64_t *begin, Py_ssize_t rows, const Py_buffer *from, const Py_buffer *to) {
  const Py_ssize_t wide = to->itemsize, entries = from->len / wide, room = to->len / wide;
  for (Py_ssize_t row = 0; row < rows; row++) {
    const int64_t first = indptr[row], end = indptr[row + 1];
    if (first < 0 || end < first || end > entries || begin[row] < 0 || begin[row] > room - (end - first)) return -1;
    memcpy((char *)to->buf + begin[row] * wide, (const char *)from->buf + first * wide, (size_t)((end - first) * wide));
  }
  return 0;
}

static PyObject *lay_rows(PyObject *self, PyObject *args) {
  enum { INDPTR, BEGIN, FROM, TO, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOO", &o[INDPTR], &o[BEGIN], &o[FROM], &o[TO])) return NULL;
  if (columns_of(o, FROM, 0, c) != 0) return NULL;
  for (int k = FROM; k < NUMBER; k++)
    if (PyObject_GetBuffer(o[k], &c[k], PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (k == TO ? PyBUF_WRITABLE : 0)) != 0) {
      release(c, k);
      return NULL;
    }
  if (c[FROM].itemsize == c[TO].itemsize && length(&c[INDPTR]) == length(&c[BEGIN]) + 1) {
    Py_BEGIN_ALLOW_THREADS
    failed = laid(c[INDPTR].buf, c[BEGIN].buf, length(&c[BEGIN]), &c[FROM], &c[TO]);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows do not fit where they are laid");
  return NULL;
}

/* CSR rows as they are held, and which of them are looked at. */
typedef struct {
  const int64_t *indptr, *chosen;
  Py_ssize_t rows, many;
  Held bins, counts;
} Some;

/* Take objects as such rows, each of the chosen ones whole; -1 and an error where they are none. */
static int some_of(PyObject **objects, Py_buffer *columns, Some *some) {
  Held entries[2];
  if (columns_of(objects, 2, 0, columns) != 0) return -1;
  if (entries_of(objects + 2, columns + 2, entries) != 0) {
    release(columns, 2);
    return -1;
  }
  *some = (Some){columns[0].buf, columns[1].buf, length(&columns[0]) - 1, length(&columns[1]), entries[0], entries[1]};
  int fits = entries[0].length == entries[1].length;
  for (Py_ssize_t k = 0; fits && k < some->many; k++) {
    const int64_t row = some->chosen[k];
    fits = row >= 0 && row < some->rows && some->indptr[row] >= 0 && some->indptr[row] <= some->indptr[row + 1] &&
           some->indptr[row + 1] <= entries[0].length;
  }
  if (fits) return 0;
  release(columns, 4);
  PyErr_SetString(PyExc_ValueError, "no such rows");
  return -1;
}

/* Add the counts of rows to `dense`, rows of `width` cells: those of chosen row i to row group[i], that of a bin to cell place[bin].
 * -1 where one is outside. */
static int placed(const Some *some, const int64_t *group, const int64_t *place, Py_ssize_t bins, int64_t width, int64_t *dense,
                  Py_ssize_t cells) {
  if (width < 1) return -1;
  for (Py_ssize_t k = 0; k < some->many; k++) {
    const int64_t row = some->chosen[k];
    if (group[k] < 0 || group[k] >= cells / width) return -1;
    uint64_t *to = (uint64_t *)dense + group[k] * width;
    for (int64_t at = some->indptr[row]; at < some->indptr[row + 1]; at++) {
      const int64_t bin = held(&some->bins, at);
      if (bin < 0 || bin >= bins || place[bin] < 0 || place[bin] >= width) return -1;
      to[place[bin]] += (uint64_t)held(&some->counts, at);
    }
  }
  return 0;
}

static PyObject *place_rows(PyObject *self, PyObject *args) {
  enum { INDPTR, CHOSEN, BINS, COUNTS, GROUP, PLACE, DENSE, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  Some some;
  long long width;
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOLO", &o[INDPTR], &o[CHOSEN], &o[BINS], &o[COUNTS], &o[GROUP], &o[PLACE], &width, &o[DENSE]))
    return NULL;
  if (some_of(o, c, &some) != 0) return NULL;
  if (columns_of(o + GROUP, NUMBER - GROUP, 1, c + GROUP) != 0) {
    release(c, GROUP);
    return NULL;
  }
  if (length(&c[GROUP]) == some.many) {
    Py_BEGIN_ALLOW_THREADS
    failed = placed(&some, c[GROUP].buf, c[PLACE].buf, length(&c[PLACE]), width, c[DENSE].buf, length(&c[DENSE]));
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows or bins are outside of what they are added to");
  return NULL;
}

/* Find in rows the entries that hold the samples of `ranks` (chosen x ranks), 1 being the lowest. -1 where a row has fewer. */
static int ranked(const Some *some, const int64_t *ranks, Py_ssize_t each, int64_t *out) {
  for (Py_ssize_t k = 0; k < some->many * each; k++) {
    const int64_t row = some->chosen[k / each], end = some->indptr[row + 1];
    int64_t at = some->indptr[row], rest = ranks[k];
    while (at < end && rest > held(&some->counts, at)) rest -= held(&some->counts, at++);
    if (at == end) return -1;
    out[k] = at;
  }
  return 0;
}

/* Add up the counts of rows above each of `each` bins of their own, (chosen x each). Bins rise. */
static int above(const Some *some, const int64_t *cuts, Py_ssize_t each, int64_t *out) {
  for (Py_ssize_t k = 0; k < some->many * each; k++) {
    const int64_t row = some->chosen[k / each];
    uint64_t sum = 0;
    for (int64_t at = some->indptr[row + 1]; at > some->indptr[row] && held(&some->bins, at - 1) > cuts[k]; at--)
      sum += (uint64_t)held(&some->counts, at - 1);
    out[k] = (int64_t)sum;
  }
  return 0;
}

static PyObject *of_each(PyObject *args, int (*find)(const Some *, const int64_t *, Py_ssize_t, int64_t *)) {
  enum { INDPTR, CHOSEN, BINS, COUNTS, ASKED, OUT, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  Some some;
  int failed = -1;
  if (!PyArg_ParseTuple(args, "OOOOOO", &o[INDPTR], &o[CHOSEN], &o[BINS], &o[COUNTS], &o[ASKED], &o[OUT])) return NULL;
  if (some_of(o, c, &some) != 0) return NULL;
  if (columns_of(o + ASKED, 2, 1, c + ASKED) != 0) {
    release(c, ASKED);
    return NULL;
  }
  const Py_ssize_t asked = length(&c[ASKED]), each = some.many ? asked / some.many : 0;
  if (asked == some.many * each && length(&c[OUT]) == asked) {
    Py_BEGIN_ALLOW_THREADS
    failed = find(&some, c[ASKED].buf, each, c[OUT].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows do not have what is asked");
  return NULL;
}

static inline double term(const Some *some, const double *weights, int64_t at) {
  return (double)held(&some->counts, at) * weights[held(&some->bins, at)];
}

/* The sum of counts times the weights of their bins, `many` entries from `at` on, in the order in which NumPy adds up (pairwise). */
static double weighed(const Some *some, const double *weights, int64_t at, int64_t many) {
  if (many < 8) {
    double sum = 0;
    for (int64_t k = at; k < at + many; k++) sum += term(some, weights, k);
    return sum;
  }
  if (many <= 128) {
    double lanes[8];
    int64_t k = at;
    for (int lane = 0; lane < 8; lane++) lanes[lane] = term(some, weights, k + lane);
    for (k += 8; k + 8 <= at + many; k += 8)
      for (int lane = 0; lane < 8; lane++) lanes[lane] += term(some, weights, k + lane);
    double sum = ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
    for (; k < at + many; k++) sum += term(some, weights, k);
    return sum;
  }
  const int64_t half = many / 2 - many / 2 % 8;
  return weighed(some, weights, at, half) + weighed(some, weights, at + half, many - half);
}

static PyObject *weigh_rows(PyObject *self, PyObject *args) {
  enum { INDPTR, CHOSEN, BINS, COUNTS, WEIGHTS, OUT, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  Some some;
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOO", &o[INDPTR], &o[CHOSEN], &o[BINS], &o[COUNTS], &o[WEIGHTS], &o[OUT])) return NULL;
  if (some_of(o, c, &some) != 0) return NULL;
  if (columns_of(o + WEIGHTS, 2, 1, c + WEIGHTS) != 0) {
    release(c, WEIGHTS);
    return NULL;
  }
  if (length(&c[OUT]) == some.many) {
    const double *weights = c[WEIGHTS].buf;
    double *out = c[OUT].buf;
    Py_BEGIN_ALLOW_THREADS
    failed = 0;
    for (Py_ssize_t k = 0; k < some.many && !failed; k++) {
      const int64_t first = some.indptr[some.chosen[k]], end = some.indptr[some.chosen[k] + 1];
      for (int64_t at = first; at < end; at++) {
        const int64_t bin = held(&some.bins, at);
        failed |= bin < 0 || bin >= length(&c[WEIGHTS]);
      }
      if (!failed) out[k] = first == end ? 0 : term(&some, weights, first) + weighed(&some, weights, first + 1, end - first - 1);
    }
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows do not have such weights");
  return NULL;
}

static PyObject *rank_rows(PyObject *self, PyObject *args) {
  (void)self;
  return of_each(args, ranked);
}

static PyObject *above_rows(PyObject *self, PyObject *args) {
  (void)self;
  return of_each(args, above);
}

typedef struct {
  const double *values, *under, *upto, *knots, *area, *below;
  Py_ssize_t bins, many;
} Reference;

/* Fill in of each row its samples times the area by which its quantile function lies above that of a reference. Of each bin are
 * known its value, the share of the reference below it and the integral of that share up to it; of the reference its knots, the
 * integral up to each and the share up to each. Returns -1 where a row is empty or a bin is none. */
static int gained(const Some *some, const Reference *other, double *out) {
  int32_t begins[SHARES]; /* of each of so many shares of the reference, the knot up to which it comes */
  for (Py_ssize_t part = 0, knot = 0; part < SHARES; part++) {
    while (knot + 1 < other->many && other->below[knot] <= (double)part / SHARES) knot++;
    begins[part] = (int32_t)knot;
  }
  for (Py_ssize_t k = 0; k < some->many; k++) {
    const int64_t first = some->indptr[some->chosen[k]], end = some->indptr[some->chosen[k] + 1];
    if (end == first) return -1;
    int64_t total = 0, before = 0;
    for (int64_t at = first; at < end; at++) {
      const int64_t bin = held(&some->bins, at);
      if (bin < 0 || bin >= other->bins) return -1;
      total += held(&some->counts, at);
    }
    double sum = 0;
    Py_ssize_t place = 0;
    for (int64_t from = first; from + 1 < end; from += PIECE) {
      /* Where the reference lies above the level of a step before its end: half of all steps, which no processor foresees. */
      const int64_t until = from + PIECE < end - 1 ? from + PIECE : end - 1;
      double shares[PIECE];
      int64_t steps[PIECE];
      int many = 0;
      for (int64_t at = from; at < until; at++) {
        before += held(&some->counts, at);
        shares[many] = (double)before / (double)total;
        steps[many] = at;
        many += other->under[held(&some->bins, at + 1)] > shares[many];
      }
      for (int step = 0; step < many; step++) {
        const double share = shares[step];
        const Py_ssize_t from_there = share >= 0 && share < 1 ? begins[(int)(share * SHARES)] : 0;
        if (from_there > place) place = from_there; /* shares rise within a row */
        while (place + 1 < other->many && other->below[place] <= share) place++;
        const int64_t bin = held(&some->bins, steps[step]), next = held(&some->bins, steps[step] + 1);
        const double low = other->values[bin], since = other->knots[place];
        const double upto = since <= low ? other->upto[bin] : other->area[place];
        sum += other->upto[next] - upto - share * (other->values[next] - (since > low ? since : low));
      }
    }
    sum += other->upto[held(&some->bins, first)];
    out[k] = sum > 0 ? (double)total * sum : 0;
  }
  return 0;
}

static PyObject *excess_rows(PyObject *self, PyObject *args) {
  enum { INDPTR, CHOSEN, BINS, COUNTS, VALUES, UNDER, UPTO, KNOTS, AREA, BELOW, OUT, NUMBER };
  PyObject *o[NUMBER];
  Py_buffer c[NUMBER];
  Some some;
  int failed = -1;
  (void)self;
  if (!PyArg_ParseTuple(args, "OOOOOOOOOOO", &o[INDPTR], &o[CHOSEN], &o[BINS], &o[COUNTS], &o[VALUES], &o[UNDER], &o[UPTO],
                        &o[KNOTS], &o[AREA], &o[BELOW], &o[OUT]))
    return NULL;
  if (some_of(o, c, &some) != 0) return NULL;
  if (columns_of(o + VALUES, NUMBER - VALUES, 1, c + VALUES) != 0) {
    release(c, VALUES);
    return NULL;
  }
  const Reference other = {c[VALUES].buf, c[UNDER].buf,       c[UPTO].buf,       c[KNOTS].buf,
                           c[AREA].buf,   c[BELOW].buf, length(&c[VALUES]), length(&c[KNOTS])};
  if (length(&c[OUT]) == some.many && other.many > 0 && length(&c[UNDER]) == other.bins && length(&c[UPTO]) == other.bins &&
      length(&c[AREA]) == other.many && length(&c[BELOW]) == other.many) {
    Py_BEGIN_ALLOW_THREADS
    failed = gained(&some, &other, c[OUT].buf);
    Py_END_ALLOW_THREADS
  }
  release(c, NUMBER);
  if (failed == 0) Py_RETURN_NONE;
  PyErr_SetString(PyExc_ValueError, "rows do not fit their reference");
  return NULL;
}

static PyMethodDef functions[] = {
    {"fio_rows", fio_rows, METH_VARARGS,
     "fio_rows(text, columns, leading, entries, lead, indptr, bins, counts) -> rows, or -1 where the text is not plain\n\n"
     "lead (uint64, 3 a row), indptr (int64, one more than rows), bins (int64) and counts (uint64) are filled in, the last two\n"
     "from `entries` on. ValueError where they are too small."},
    {"integer_rows", integer_rows, METH_VARARGS,
     "integer_rows(text, width, columns) -> rows, or -1 where the text is not rows of `width` plain integers\n\n"
     "columns (int64, width x room for rows) is filled in. ValueError where it is too small."},
    {"hdr_rows", hdr_rows, METH_VARARGS,
     "hdr_rows(text, starts, indptr, bins, counts) -> counts, or -1 where a word is cut off or has more than eight bytes\n\n"
     "Row i is the ZigZag LEB128 words text[starts[i]:starts[i + 1]]. indptr, bins and counts (int64) are filled in; the last\n"
     "two must be as long as the text. ValueError where they are not."},
    {"add_rows", add_rows, METH_VARARGS,
     "add_rows(group, indptr, bins, counts, low, width, dense): add CSR rows to rows of `width` bins.\n\n"
     "The first of these bins is `low`. All are int64. ValueError where one is outside."},
    {"share", share, METH_VARARGS,
     "share(counts, indptr, part, whole, before): fill in the counts of the share part/whole of each CSR row, all int64.\n\n"
     "ValueError where a part is none of its whole."},
    {"window_rows", window_rows, METH_VARARGS,
     "window_rows(series, start, end, indptr, bins, counts, step, fine, known, low, width, rest, dense, least, most, of, window,\n"
     "indptr, bins, counts) -> sums given out\n\n"
     "CSR rows are cut at edges of `fine` where they cross one of `step`, and added up by window and series; bins rise. rest is\n"
     "twice as long as a row, dense zeros, least widths and most -1 before and after. The last five, the series and begin of\n"
     "each sum and its CSR row, are filled in; a window may be given out again. All int64. ValueError where one is outside."},
    {"stretches", stretches, METH_VARARGS,
     "stretches(ends, latencies, series, labels, every, state, sums, places) -> stretches of 32 operations whose sum it divides\n\n"
     "series (int64) are places in labels (uint64). state (39 words) goes on from call to call; sums and places of the last\n"
     "operation of each are filled in and must be as long as there are operations. ValueError where they are not."},
    {"event_rows", event_rows, METH_VARARGS,
     "event_rows(series, ends, latencies, step, first, known, half, low, width, dense, least, most, spent, indptr, bins, counts)\n\n"
     "-> bins filled in. A cell for each window of `step` from `first` on and each of `known` series, with bins from `low` on:\n"
     "the least and most latency and their sum, and CSR rows, all int64. dense, `width` a cell, is zeros before and after.\n"
     "ValueError where an operation is outside."},
    {"cut_levels", cut_levels, METH_VARARGS,
     "cut_levels(below, weights, due, logs, penalty, best, back): fill in where the cheapest level that ends at each place begins.\n\n"
     "below (int64, sets x counts x places) are sums before each place, weights (sets x counts) those of x log x, due (sets x\n"
     "places, or empty) sums of what was due, logs logarithms from 0 to 2^18; best (places) is scratch, back (int64) sets x places."},
    {"excess_rows", excess_rows, METH_VARARGS,
     "excess_rows(indptr, chosen, bins, counts, values, under, upto, knots, area, below, out): fill in the excess of chosen CSR rows.\n\n"
     "values, under and upto are of each bin, knots, area and below of the reference; ValueError where a bin is none of these."},
    {"unpack_rows", unpack_rows, METH_VARARGS,
     "unpack_rows(text, codes, indptr, bins, counts): fill in bins and counts (int64) of packed rows, each in its coding (1 to 4).\n\n"
     "ValueError where the text is not just so many records."},
    {"check_rows", check_rows, METH_VARARGS,
     "check_rows(indptr, bins, counts, most, sums) -> whether the bins of each CSR row rise, from 0 on and below `most`\n\n"
     "sums (int64) of counts are filled in, one a row."},
    {"sum_rows", sum_rows, METH_VARARGS,
     "sum_rows(order, group, indptr, bins, counts, low, cells, pointers, summed, sums) -> how many sums there are\n\n"
     "Rows are added to row `group`, which rises in their `order`; cells are zeros, one a bin from `low` on. pointers, summed (bins)\n"
     "and sums are filled in. ValueError where one is outside."},
    {"lay_rows", lay_rows, METH_VARARGS,
     "lay_rows(indptr, begin, column, out): copy the entries of CSR rows to where each row begins in another column.\n\n"
     "Entries of both are of one type. ValueError where a row does not fit."},
    {"place_rows", place_rows, METH_VARARGS,
     "place_rows(indptr, chosen, bins, counts, group, place, width, dense): add chosen CSR rows to rows of `width` cells.\n\n"
     "group says to which, place (one a bin) to which cell. Bins and counts may be narrow. ValueError where one is outside."},
    {"rank_rows", rank_rows, METH_VARARGS,
     "rank_rows(indptr, chosen, bins, counts, ranks, out): fill in the entries that hold samples of CSR rows, (chosen x ranks).\n\n"
     "Bins and counts may be narrow. ValueError where a row has fewer."},
    {"weigh_rows", weigh_rows, METH_VARARGS,
     "weigh_rows(indptr, chosen, bins, counts, weights, out): fill in the sums of counts times weights (one a bin) of chosen CSR rows."},
    {"above_rows", above_rows, METH_VARARGS,
     "above_rows(indptr, chosen, bins, counts, cuts, out): fill in the counts of chosen CSR rows above bins, (chosen x cuts)."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_kernel", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__kernel(void) { return PyModuleDef_Init(&module); }

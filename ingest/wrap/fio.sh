#!/bin/sh
# fio with histograms, made by `tailboard record fio`.
#
# Adds to a command line that logs latencies (--write_lat_log=P):
#   --write_hist_log=P --log_hist_msec=MS   behind each of them, so that every job that has the one log has the other
#   json+ in place of json                  the histogram of the whole run in fio's own output
# and becomes fio: one process, the same name, the same input, output, signals and exit status. All else is passed on as it came.
# What is left out is said on standard error. Standard output is fio's alone.
#
# It is installed under the name fio (CBT ends fio by that name) and holds the path of the real one: sudo resets both the
# environment and PATH. Its own variables begin with tailboard_, so that none of the caller's reaches fio changed.

tailboard_fio='@FIO@'
tailboard_msec='@MSEC@'

tailboard_say() {
    printf 'tailboard: %s\n' "$*" >&2
}

# Sets tailboard_option to the full name of the option that an argument is, tailboard_value to what stands behind its `=`,
# tailboard_before to what stands in front of that value; tailboard_before is empty where the value is the next argument.
# fio takes --name=value, --name value, one dash for two, and the beginning of a name where only one option begins so.
tailboard_parse() {
    tailboard_option='' tailboard_value='' tailboard_before=''
    case $1 in
        -F) tailboard_option=output-format; return ;;
        -F*) tailboard_option=output-format tailboard_before=-F tailboard_value=${1#-F}; return ;;
        --?*) tailboard_option=${1#--} ;;
        -?*) tailboard_option=${1#-} ;;
        *) return ;;
    esac
    case $tailboard_option in
        *=*)
            tailboard_option=${tailboard_option%%=*}
            tailboard_value=${1#*=}
            tailboard_before=${1%%=*}=
            ;;
    esac
    case $tailboard_option in
        write_l*) tailboard_full=write_lat_log ;;
        write_his*) tailboard_full=write_hist_log ;;
        log_hist_m*) tailboard_full=log_hist_msec ;;
        output-*) tailboard_full=output-format ;;
        *) return ;;
    esac
    case $tailboard_full in
        "$tailboard_option"*) tailboard_option=$tailboard_full ;;
    esac
}

# Sets the same for the next argument of a command line. Where it is the value of the option before it, tailboard_option is
# that option; of such an option itself nothing is known yet. `--` ends the options.
tailboard_next() {
    tailboard_option='' tailboard_value=$1 tailboard_before=''
    if [ -n "$tailboard_waits" ]; then
        tailboard_option=$tailboard_waits tailboard_waits=''
    elif [ "$1" = -- ]; then
        tailboard_ended=yes
    elif [ "$tailboard_ended" = no ]; then
        tailboard_parse "$1"
        case $tailboard_before$tailboard_option in
            write_lat_log | write_hist_log | log_hist_msec | log_compression | log_store_compressed | output-format)
                tailboard_waits=$tailboard_option tailboard_option=waits
                ;;
        esac
    fi
}

# Sets tailboard_value to a list of formats with json+ for each json.
tailboard_plus() {
    tailboard_value=,$1,
    while :; do
        case $tailboard_value in
            *,json,*) tailboard_value="${tailboard_value%%,json,*},json+,${tailboard_value#*,json,}" ;;
            *) break ;;
        esac
    done
    tailboard_value=${tailboard_value#,}
    tailboard_value=${tailboard_value%,}
}

# Says what to add to a job file that logs latencies and no histograms.
tailboard_job_file() {
    [ -f "$1" ] && [ -r "$1" ] || return 0
    case $1 in /*) tailboard_path=$1 ;; *) tailboard_path=./$1 ;; esac
    tailboard_lines=$(dd bs=65536 count=1 <"$tailboard_path" 2>/dev/null | grep -E '^[[:space:]]*write_(lat|hist)_log' 2>/dev/null)
    case $tailboard_lines in
        *write_hist_log*) ;;
        *write_lat_log*)
            tailboard_say "$1 logs latencies, but no histograms, and job files are not rewritten." \
                "Below each write_lat_log=P add these two lines, and run it with --output-format=json+:"
            printf '  write_hist_log=P\n  log_hist_msec=%s\n' "$tailboard_msec" >&2
            ;;
    esac
}

# Sets tailboard_known to whether this fio knows histograms (2.14 and later), tailboard_sound to whether it logs them undamaged:
# fio 3.6 to 3.16 fill the bins from 786 us up with memory that was never written.
tailboard_look() {
    tailboard_known=no tailboard_sound=no tailboard_major='' tailboard_minor=''
    tailboard_text=$("$tailboard_fio" --version 2>/dev/null </dev/null)
    case $tailboard_text in
        fio-[0-9]*.[0-9]*)
            tailboard_text=${tailboard_text#fio-}
            tailboard_major=${tailboard_text%%.*}
            tailboard_minor=${tailboard_text#*.}
            tailboard_minor=${tailboard_minor%%[!0-9]*}
            ;;
    esac
    case $tailboard_major in '' | *[!0-9]* | ?????*) tailboard_minor='' ;; esac
    case $tailboard_minor in
        '' | ?????*)
            tailboard_say "no histograms are added, as the version of $tailboard_fio cannot be determined:" \
                "an old fio would refuse them, and fio 3.6 to 3.16 would log damaged ones"
            return
            ;;
    esac
    if [ "$tailboard_major" -lt 2 ] || { [ "$tailboard_major" -eq 2 ] && [ "$tailboard_minor" -lt 14 ]; }; then
        tailboard_say "no histograms are added: this is fio $tailboard_major.$tailboard_minor, and they begin with fio 2.14"
        return
    fi
    tailboard_known=yes
    if [ "$tailboard_major" -eq 3 ] && [ "$tailboard_minor" -ge 6 ] && [ "$tailboard_minor" -le 16 ]; then
        tailboard_say "no histogram log is added: this is fio 3.$tailboard_minor, and fio 3.6 to 3.16 damage them"
    else
        tailboard_sound=yes
    fi
}

if [ ! -x "$tailboard_fio" ] || [ -d "$tailboard_fio" ]; then
    tailboard_say "there is no program $tailboard_fio on this machine; make the wrapper anew with: tailboard record fio --fio PATH"
    exit 127
fi
if [ "$tailboard_fio" -ef "$0" ] 2>/dev/null; then # a shell of before POSIX 2024 may not know -ef, and goes on
    tailboard_say "$0 stands in the place of the fio that it is to start: install it elsewhere, or move that fio"
    exit 126
fi

# What the command line asks for.
tailboard_logs=no tailboard_formats='' tailboard_hist=yes tailboard_interval=no tailboard_why='' tailboard_leave=no
tailboard_waits='' tailboard_ended=no
for tailboard_word do
    tailboard_next "$tailboard_word"
    case $tailboard_option in
        write_lat_log) [ -z "$tailboard_value" ] || tailboard_logs=yes ;;
        write_hist_log) tailboard_hist=no ;;
        log_hist_msec) tailboard_interval=yes ;;
        output-format) tailboard_formats=,$tailboard_value, ;;
        log_compression | log_store_compressed)
            [ "$tailboard_value" = 0 ] || tailboard_why="fio's compressed logs destroy histograms ($tailboard_option)"
            ;;
        client | C) tailboard_why='fio --client adds each row to the one after the next, and loses long logs on the way' ;;
        parse-only | P | showcmd | s | server | S | help | h | version | v | cmdhelp | c | enghelp | i) tailboard_leave=yes ;;
        '') [ "$tailboard_word" = -- ] || tailboard_job_file "$tailboard_word" ;;
    esac
done

# What to add. A run that logs no latencies, such as CBT's prefill, is passed on as it came.
tailboard_plus=no
if [ "$tailboard_logs" = no ] || [ "$tailboard_leave" = yes ]; then
    tailboard_hist=no
else
    case $tailboard_formats in *,json,*) tailboard_plus=yes ;; esac
    if [ "$tailboard_hist" = yes ] && [ -n "$tailboard_why" ]; then
        tailboard_say "no histogram log is added: $tailboard_why"
        tailboard_hist=no
    fi
    if [ "$tailboard_hist" = yes ] || [ "$tailboard_plus" = yes ]; then
        tailboard_look
        [ "$tailboard_sound" = yes ] || tailboard_hist=no
        [ "$tailboard_known" = yes ] || tailboard_plus=no
    fi
    case $tailboard_hist$tailboard_formats in
        yes*,json,* | yes*,json+,*) ;;
        yes*)
            tailboard_say 'fio prints text alone, and whoever reads that text may read no json: it stays as it is.' \
                'I/Os after the last row of a histogram log are then in no histogram; --output-format=json+,normal has them'
            ;;
    esac
fi

if [ "$tailboard_hist" = yes ] || [ "$tailboard_plus" = yes ]; then
    tailboard_waits='' tailboard_ended=no tailboard_left=$#
    while [ "$tailboard_left" -gt 0 ]; do
        tailboard_word=$1
        shift
        tailboard_left=$((tailboard_left - 1))
        tailboard_next "$tailboard_word"
        case $tailboard_plus$tailboard_option in
            yesoutput-format)
                tailboard_plus "$tailboard_value"
                tailboard_word=$tailboard_before$tailboard_value
                ;;
        esac
        set -- "$@" "$tailboard_word"
        case $tailboard_hist$tailboard_option in
            yeswrite_lat_log)
                [ -z "$tailboard_value" ] || set -- "$@" "--write_hist_log=$tailboard_value"
                [ -z "$tailboard_value" ] || [ "$tailboard_interval" = yes ] || set -- "$@" "--log_hist_msec=$tailboard_msec"
                ;;
        esac
    done
fi
exec "$tailboard_fio" "$@"

"""The parts of a plan's shell script that are the same in every plan."""

from __future__ import annotations

CHECK_LIMIT_S = 180
"""Enough to read a PyTorch of several gigabytes from a slow disk."""

HEAD = r"""#!/bin/sh
# Plan for {machine}.
# Made by `rocmend doctor --plan sh` from facts read on {date}.
# Where it is started on another machine it says so, and asks before it goes on.
#
# It stops at each step, says what it will do, and asks. It runs nothing without a yes. The steps' checks, which only
# look, it runs after one yes at the beginning. Steps that it cannot do (a variable of your shell, a file to edit, the
# BIOS) it explains, and waits; optional steps it offers. At its end it lists what was done and what was skipped.
# Finished steps are kept in ~/.local/state/rocmend: after a reboot, or whenever you stopped, run it again and it goes
# on.
#
# Save it and run it: sh plan.sh
# shellcheck disable=SC2024  # the files that sudo's output goes to are yours
set -u
"""
MAIN = r"""
main() {{
    machine=$(cat /etc/machine-id 2>/dev/null || uname -n)
    boot=$(cat /proc/sys/kernel/random/boot_id 2>/dev/null || echo unknown)
    state_dir=${{XDG_STATE_HOME:-${{HOME:?is not set}}/.local/state}}/rocmend
    state=$state_dir/plan-{digest}-$(printf '%s' "$machine" | cksum | cut -d ' ' -f 1)
    printed=$state.check
    mkdir -p "$state_dir" && touch "$state" || exit 2
    printf '%s\n' {title} "Finished steps are kept in $state"
    {confirm}
    grep -q '^begun ' "$state" || printf 'begun %s\n' "$boot" >>"$state"
    pending=no
    checks=no
    results=
    trap 'summary {all}' EXIT
"""
ASK_FOR_CHECKS = r"""
    printf '\nSteps have checks that only look: whether the step is needed, and whether it worked.\n'
    ask 'Run these checks?' && checks=yes
"""
END = r"""
    printf '\nThat was the last step. See what is left: rocmend doctor\n'
}
"""
REBOOT_LEFT = r"""
    if [ "$pending" = yes ]; then printf '\nReboot for it to take effect: sudo reboot\n'; fi"""
TOOLS = r"""
# ask QUESTION: succeed on yes, fail on skip, leave on quit or where there is nobody to answer
ask() {
    while :; do
        printf '   %s [y]es, [s]kip, [q]uit: ' "$1"
        IFS= read -r answer || { printf '\nNobody answers: stopped.\n'; exit 1; }
        case $answer in
            [Yy] | [Yy]es | YES) return 0 ;;
            [Nn] | [Nn]o | NO | [Ss] | [Ss]kip) return 1 ;;
            [Qq] | [Qq]uit) printf 'Stopped. Run this again to go on.\n'; exit 1 ;;
        esac
        printf '   Answer y, s or q.\n'
    done
}

# gpus_here: print the gfx targets of the GPUs that the driver shows
gpus_here() {
    cat /sys/class/kfd/kfd/topology/nodes/*/properties 2>/dev/null | awk '$1 == "gfx_target_version" && $2 > 0 {
        printf "%sgfx%d%x%x", found++ ? " " : "", int($2 / 10000), int($2 / 100) % 100, $2 % 100 }'
}

# confirm_machine NAME HOST [TARGET ...]: ask once where this is another machine than the plan was made for; HOST is
# empty where its name is not known
confirm_machine() {
    name=$1
    host=$2
    shift 2
    here=$(gpus_here)
    other=no
    [ "$host" = "$(uname -n)" ] || other=yes
    for target in "$@"; do
        case " $here " in
            "  " | *" $target "*) ;;
            *) other=yes ;;
        esac
    done
    if [ "$other" = no ] || grep -q '^machine ' "$state"; then return; fi
    printf '\nThis plan was made for %s.\n' "$name"
    printf 'This machine is %s, with %s.\n' "$(uname -n)" "${here:-no AMD GPU that the driver shows}"
    ask 'Use the plan here all the same?' || { printf 'Stopped.\n'; exit 1; }
    remember machine
}

# boot_of NUMBER: print in which boot a step was done
boot_of() { sed -n "s/^$1 //p" "$state" | tail -n 1; }
remember() { printf '%s %s\n' "$1" "$boot" >>"$state"; }

# note NUMBER WORD: keep what became of a step
note() { results="$results$1 $2
"; }

# summary NUMBER ...: say what became of each step
summary() {
    printf '\nSteps of this plan:\n'
    for number in "$@"; do
        word=$(printf '%s' "$results" | sed -n "s/^$number //p" | tail -n 1)
        printf '   %-12s %s\n' "${word:-not reached}" "$("about_$number" | sed -n 1p)"
    done
}

# limited: run the check on its standard input in a shell of its own, which is stopped after @LIMIT@ s
limited() {
    test=$(cat)
    limit=
    if command -v timeout >/dev/null; then limit='timeout -k 5 @LIMIT@'; fi
    # shellcheck disable=SC2086  # words
    PYTHONSAFEPATH=1 $limit sh -c "$test" </dev/null &
    # it is in a process group of its own, which Ctrl-C does not reach
    trap 'kill "$!"; exit 130' INT
    wait "$!"
    found=$?
    trap - INT
    return "$found"
}

# look NUMBER TEST: run a step's check; 0 it passes, 1 it does not, 2 it was not run
look() {
    case $2 in
        none) return 2 ;;
        root)
            ask 'Run its check as root?' || return 2
            sudo -v && "check_$1"
            ;;
        *)
            [ "$checks" = yes ] || return 2
            "check_$1" >"$printed" 2>&1
            ;;
    esac
    case $? in
        0) return 0 ;;
        124 | 137) printf '   Its check took more than @LIMIT@ s and was stopped.\n' ;;
    esac
    return 1
}

# say_why TEST: show what a check that did not pass printed, and the programs that it did not find
say_why() {
    [ "$1" = user ] && [ -s "$printed" ] || return 0
    printf '   It printed:\n'
    tail -n 8 "$printed" | cut -c 1-200 | sed 's/^/     /'
    sed -n 's/^.*: \([^ :]*\): \(command \)*not found$/\1/p' "$printed" | sort -u | while IFS= read -r tool; do
        printf '   The check needs %s, which is not installed here.\n' "$tool"
    done
}

# step NUMBER HOW TEST EFFECT: NUMBER of an optional step is o1, o2 …; HOW is run or hand, TEST is none, user or root,
# EFFECT is now, reboot or next: in the shell that runs the script the next time
step() {
    printf '\n'
    "about_$1"
    done_in=$(boot_of "$1")
    if [ -n "$done_in" ]; then
        if [ "$4" = reboot ] && [ "$done_in" = "$boot" ]; then
            pending=yes
            note "$1" 'done'
            printf '   Done; it takes effect with the reboot.\n'
            return
        fi
        look "$1" "$3"
        found=$?
        if [ "$found" != 1 ]; then
            note "$1" 'done'
            printf '   Done.\n'
            return
        fi
        printf '   Done before, but its check does not pass.\n'
        say_why "$3"
    elif [ "$3" = user ] && look "$1" "$3"; then
        note "$1" 'not needed'
        printf '   Nothing to do: its check passes.\n'
        return
    fi
    note "$1" stopped
    if [ "$2" = hand ]; then
        ask 'This one is yours to do. Have you done it?' || { note "$1" 'skipped'; return; }
    else
        ask 'Run the commands?' || { note "$1" 'skipped'; return; }
        note "$1" failed
        if ! "do_$1"; then
            printf '   A command failed: the step is not finished. Its undo is shown above.\n'
            ask 'Go on with the next step?' || exit 1
            return
        fi
    fi
    remember "$1"
    note "$1" 'done'
    if [ "$4" = reboot ]; then
        pending=yes
        return
    fi
    if [ "$4" = next ] && [ "$3" != none ]; then
        printf '   This script still has the old environment: run it again from that shell to check it.\n'
        return
    fi
    look "$1" "$3"
    found=$?
    if [ "$found" = 1 ]; then
        note "$1" 'check fails'
        printf '   Its check does not pass here yet: see above what it expects.\n'
        say_why "$3"
    fi
}

# reboot_step NUMBER: it is done once the machine was booted anew after the steps before it
reboot_step() {
    printf '\n'
    "about_$1"
    if [ "$pending" = no ] && ! grep -qxF "begun $boot" "$state"; then
        note "$1" 'done'
        printf '   Done.\n'
        return
    fi
    note "$1" stopped
    ask 'Reboot now? Run this again afterwards.' || { note "$1" 'skipped'; return; }
    note "$1" 'done'
    "do_$1"
    exit 0
}
""".replace("@LIMIT@", str(CHECK_LIMIT_S))

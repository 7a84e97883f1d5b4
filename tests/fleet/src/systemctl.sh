#!/bin/sh
# systemctl of a simulated host. The directory $UNITS has a file for each active unit: when it started, in microseconds.
for unit; do :; done
case $1 in
-q) [ -e "$UNITS/$unit" ] ;;
show)
    [ -e "$UNITS/$unit" ] || exit 0
    for property; do
        case $property in
        ActiveState) echo ActiveState=active ;;
        *TimestampMonotonic) echo "$property=$(cat "$UNITS/$unit")" ;;
        esac
    done
    ;;
*) exit 1 ;;
esac

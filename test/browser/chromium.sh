#!/usr/bin/env bash
# Starts the browser that BROWSER names, without the list of suggestions below its address bar. That is a page of its own in each
# window, and takes more processor time than most pages of the tests. Of several such parameters only the last counts.
exec "$BROWSER" "${@/#--disable-features=/--disable-features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,}"

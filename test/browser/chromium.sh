#!/usr/bin/env bash
# Starts the browser that BROWSER names, without what takes much processor time and what no test needs: the list of suggestions below
# its address bar (a page of its own in each window), a renderer for the next site that may be opened, and a process that stands in
# for a graphics card. Of several parameters that disable features only the last counts.
features=WebUIOmniboxPopup,WebUIOmniboxAimPopup,SpareRendererForSitePerProcess
exec "$BROWSER" "${@/#--disable-features=/--disable-features=$features,}" --disable-gpu

"""Bars, valuations, reports, macro figures, news and the symbol directory, each as it was known at a moment.

The door is `application.market_data.MarketData`: every read names its `as_of` and sees nothing later.
"""
